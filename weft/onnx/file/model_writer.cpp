#include "weft/onnx/file/model_writer.h"

#include <onnx.pb.h>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/version.h"
#include "weft/onnx/file/tensor_format.h"

namespace weft::onnx {

namespace {

constexpr int64_t kMostBytes = (int64_t{1} << 31) - (int64_t{64} << 20);  // of a file, with room for its nodes
constexpr int64_t kExternalBytes = 1024;                                  // smaller tensors stay in the file

/// Where tensors go: into the message, or behind each other into another file.
class TensorWriter {
 public:
  TensorWriter() = default;
  TensorWriter(AtomicFile& file, std::string name) : file_(&file), name_(std::move(name)) {}

  void write(const HostValue& value, const std::string& name, onnx_format::Tensor& target) {
    const Tensor* tensor = value.tensor();
    if (file_ == nullptr || tensor == nullptr || tensor->bytes() < kExternalBytes) return encode(value, name, target);
    const Tensor plain = tensor->layout() == Layout{} ? *tensor : tensor->with_layout({});
    target.set_name(name);
    target.set_data_type(data_type_of(plain.dtype()));
    for (const int64_t size : plain.shape()) target.add_dims(size);
    target.set_data_location(onnx_format::Tensor::EXTERNAL);
    const auto add = [&](const char* key, const std::string& text) {
      auto* entry = target.add_external_data();
      entry->set_key(key);
      entry->set_value(text);
    };
    add("location", name_);
    add("offset", std::to_string(file_->bytes()));
    add("length", std::to_string(plain.bytes()));
    file_->write(plain.data(), static_cast<size_t>(plain.bytes()));
    const std::string rest(static_cast<size_t>(align_up(plain.bytes()) - plain.bytes()), '\0');
    file_->write(rest.data(), rest.size());
  }

 private:
  AtomicFile* file_ = nullptr;
  std::string name_;
};

void write_type(const ValueInfo& info, onnx_format::Type& type) {
  auto* tensor = type.mutable_tensor_type();
  tensor->set_elem_type(info.kind == ValueInfo::Kind::strings ? kStrings
                                                              : data_type_of(info.dtype.value_or(DType::f32)));
  if (!info.shape) return;
  auto* shape = tensor->mutable_shape();
  for (const Dimension& dimension : *info.shape) {
    auto* written = shape->add_dim();
    if (dimension.size)
      written->set_dim_value(*dimension.size);
    else if (!dimension.symbol.empty())
      written->set_dim_param(dimension.symbol);
  }
}

void write_graph(const OnnxGraph& graph, TensorWriter& tensors, onnx_format::Graph& target);

void write_attribute(const std::string& name, const Attribute& attribute, TensorWriter& tensors,
                     onnx_format::Attribute& target) {
  using Kind = onnx_format::Attribute;
  target.set_name(name);
  if (const auto* whole = std::get_if<int64_t>(&attribute.value)) {
    target.set_type(Kind::INT);
    target.set_i(*whole);
  } else if (const auto* real = std::get_if<float>(&attribute.value)) {
    target.set_type(Kind::FLOAT);
    target.set_f(*real);
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    target.set_type(Kind::STRING);
    target.set_s(*text);
  } else if (const auto* value = std::get_if<HostValue>(&attribute.value)) {
    target.set_type(Kind::TENSOR);
    tensors.write(*value, "", *target.mutable_t());
  } else if (const auto* graph = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value)) {
    target.set_type(Kind::GRAPH);
    write_graph(**graph, tensors, *target.mutable_g());
  } else if (const auto* wholes = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    target.set_type(Kind::INTS);
    for (const int64_t number : *wholes) target.add_ints(number);
  } else if (const auto* reals = std::get_if<std::vector<float>>(&attribute.value)) {
    target.set_type(Kind::FLOATS);
    for (const float number : *reals) target.add_floats(number);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    target.set_type(Kind::STRINGS);
    for (const std::string& each : *texts) target.add_strings(each);
  } else {
    fail(ErrorKind::usage, "ONNX: the attribute '{}' is of a kind that weft does not write", name);
  }
}

void write_graph(const OnnxGraph& graph, TensorWriter& tensors, onnx_format::Graph& target) {
  target.set_name(graph.name);
  for (const OnnxNode& node : graph.nodes) {
    auto* written = target.add_node();
    written->set_name(node.name);
    written->set_op_type(node.op);
    if (!node.domain.empty()) written->set_domain(node.domain);
    for (const std::string& input : node.inputs) written->add_input(input);
    for (const std::string& output : node.outputs) written->add_output(output);
    for (const auto& [name, attribute] : node.attributes)
      write_attribute(name, attribute, tensors, *written->add_attribute());
  }
  for (const auto& [name, value] : graph.initializers) tensors.write(value, name, *target.add_initializer());
  for (const auto& [list, add] : {std::pair{&graph.inputs, true}, std::pair{&graph.outputs, false}})
    for (const ValueInfo& info : *list) {
      auto* written = add ? target.add_input() : target.add_output();
      written->set_name(info.name);
      write_type(info, *written->mutable_type());
    }
}

std::string print(const Model& model, TensorWriter& tensors) {
  onnx_format::Model target;
  target.set_ir_version(model.ir_version);
  target.set_producer_name("weft");
  target.set_producer_version(std::string(version()));
  for (const auto& [domain, version] : model.opsets) {
    auto* set = target.add_opset_import();
    set->set_domain(domain);
    set->set_version(version);
  }
  for (const auto& [key, text] : model.metadata) {
    auto* entry = target.add_metadata_props();
    entry->set_key(key);
    entry->set_value(text);
  }
  write_graph(model.graph, tensors, *target.mutable_graph());
  std::string content;
  if (!target.SerializeToString(&content)) fail(ErrorKind::internal, "'{}' could not be made a file", model.path);
  return content;
}

}  // namespace

std::string print_model(const Model& model) {
  TensorWriter inside;
  return print(model, inside);
}

void write_model(const std::filesystem::path& path, const Model& model) {
  int64_t bytes = 0;
  for (const auto& [name, value] : model.graph.initializers)
    if (const Tensor* tensor = value.tensor()) bytes += tensor->bytes();
  if (bytes <= kMostBytes) return write_atomically(path, print_model(model));
  const std::string data_name = path.filename().string() + ".data";
  AtomicFile data(path.parent_path() / data_name);
  TensorWriter outside(data, data_name);
  const std::string content = print(model, outside);
  data.commit();
  write_atomically(path, content);
}

}  // namespace weft::onnx
