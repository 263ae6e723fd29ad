#include "weft/onnx/file/model_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx.pb.h>

#include <limits>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/mapped_file.h"
#include "weft/onnx/file/tensor_format.h"

namespace weft::onnx {

namespace {

template <typename Message>
bool parse(std::string_view content, Message& message) {
  if (content.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return false;
  google::protobuf::io::ArrayInputStream bytes(content.data(), static_cast<int>(content.size()));
  google::protobuf::io::CodedInputStream stream(&bytes);
  stream.SetRecursionLimit(100);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

ValueInfo read_type(const std::string& name, const onnx_format::Type& type) {
  ValueInfo info;
  info.name = name;
  if (type.has_sequence_type()) info.kind = ValueInfo::Kind::sequence;
  if (type.has_optional_type()) info.kind = ValueInfo::Kind::optional;
  if (type.has_map_type()) info.unsupported = "a map";
  if (type.has_sparse_tensor_type()) info.unsupported = "a sparse tensor";
  if (!type.has_tensor_type()) return info;
  const int32_t data_type = type.tensor_type().elem_type();
  info.kind = data_type == kStrings ? ValueInfo::Kind::strings : ValueInfo::Kind::tensor;
  if (data_type == 0) info.kind = ValueInfo::Kind::unknown;
  info.dtype = dtype_of(data_type);
  if (!info.dtype && data_type != kStrings && data_type != 0) info.unsupported = name_of_data_type(data_type);
  if (!type.tensor_type().has_shape()) return info;
  info.shape.emplace();
  for (const auto& dimension : type.tensor_type().shape().dim()) {
    Dimension read;
    if (dimension.has_dim_value() && dimension.dim_value() >= 0) read.size = dimension.dim_value();
    if (dimension.has_dim_param()) read.symbol = dimension.dim_param();
    info.shape->push_back(read);
  }
  return info;
}

class Reader {
 public:
  explicit Reader(std::filesystem::path folder) : external_(std::move(folder)) {}

  OnnxGraph read(const onnx_format::Graph& source) {
    OnnxGraph graph;
    graph.name = source.name();
    for (const auto& info : source.input()) graph.inputs.push_back(read_type(info.name(), info.type()));
    for (const auto& info : source.output()) graph.outputs.push_back(read_type(info.name(), info.type()));
    for (const auto& info : source.value_info()) graph.values[info.name()] = read_type(info.name(), info.type());
    for (const auto& tensor : source.initializer()) add_initializer(tensor, graph);
    for (const auto& tensor : source.sparse_initializer())
      graph.unusable_initializers[tensor.values().name()] = "is a sparse tensor";
    for (const auto& node : source.node()) graph.nodes.push_back(read(node));
    return graph;
  }

  /// The whole model's graph. Weights leave the message one by one: otherwise all of them are there twice for a while.
  OnnxGraph take(onnx_format::Graph& source) {
    OnnxGraph weights;
    for (auto& tensor : *source.mutable_initializer()) {
      add_initializer(tensor, weights);
      if (tensor.has_raw_data()) std::unique_ptr<std::string>(tensor.release_raw_data());
    }
    source.clear_initializer();
    OnnxGraph graph = read(source);
    graph.initializers.merge(weights.initializers);
    graph.unusable_initializers.merge(weights.unusable_initializers);
    return graph;
  }

  OnnxNode read(const onnx_format::Node& source) {
    OnnxNode node{source.name(), source.op_type(), source.domain(), source.overload(), {}, {}, {}};
    if (node.domain == "ai.onnx") node.domain.clear();
    node.inputs.assign(source.input().begin(), source.input().end());
    node.outputs.assign(source.output().begin(), source.output().end());
    for (const auto& attribute : source.attribute()) node.attributes[attribute.name()] = read(attribute);
    return node;
  }

  Attribute read(const onnx_format::Attribute& source) {
    using Kind = onnx_format::Attribute;
    Attribute result;
    result.refers_to = source.ref_attr_name();
    if (!result.refers_to.empty()) return result;
    switch (kind_of(source)) {
      case Kind::FLOAT:
        result.value = source.f();
        break;
      case Kind::INT:
        result.value = int64_t{source.i()};
        break;
      case Kind::STRING:
        result.value = source.s();
        break;
      case Kind::FLOATS:
        result.value = std::vector<float>(source.floats().begin(), source.floats().end());
        break;
      case Kind::INTS:
        result.value = std::vector<int64_t>(source.ints().begin(), source.ints().end());
        break;
      case Kind::STRINGS:
        result.value = std::vector<std::string>(source.strings().begin(), source.strings().end());
        break;
      case Kind::TENSOR:
        read_tensor(source.t(), result);
        break;
      case Kind::GRAPH:
        result.value = std::make_shared<const OnnxGraph>(read(source.g()));
        break;
      case Kind::TYPE:
        result.value = read_type(source.name(), source.tp());
        break;
      case Kind::SPARSE_TENSOR:
        result.unsupported = "a sparse tensor";
        break;
      default:
        result.unsupported = fmt::format("of kind {}", static_cast<int>(source.type()));
        break;
    }
    return result;
  }

 private:
  /// Files of the first version do not state it.
  static onnx_format::Attribute::Kind kind_of(const onnx_format::Attribute& source) {
    using Kind = onnx_format::Attribute;
    if (source.has_type() && source.type() != Kind::UNDEFINED) return source.type();
    if (source.has_f()) return Kind::FLOAT;
    if (source.has_i()) return Kind::INT;
    if (source.has_s()) return Kind::STRING;
    if (source.has_t()) return Kind::TENSOR;
    if (source.has_g()) return Kind::GRAPH;
    if (source.floats_size() > 0) return Kind::FLOATS;
    if (source.strings_size() > 0) return Kind::STRINGS;
    return Kind::INTS;
  }

  void add_initializer(const onnx_format::Tensor& tensor, OnnxGraph& graph) {
    if (tensor.data_type() != kStrings && !dtype_of(tensor.data_type()))
      graph.unusable_initializers[tensor.name()] = "has numbers of the type " + name_of_data_type(tensor.data_type());
    else
      graph.initializers[tensor.name()] = decode(tensor, external_);
  }

  void read_tensor(const onnx_format::Tensor& source, Attribute& result) {
    if (source.data_type() != kStrings && !dtype_of(source.data_type()))
      result.unsupported = "a tensor of " + name_of_data_type(source.data_type());
    else
      result.value = decode(source, external_);
  }

  ExternalData external_;
};

std::map<std::string, int64_t> read_opsets(const google::protobuf::RepeatedPtrField<onnx_format::OperatorSet>& source) {
  std::map<std::string, int64_t> opsets;
  for (const auto& set : source) opsets[set.domain() == "ai.onnx" ? "" : set.domain()] = set.version();
  return opsets;
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// Of a value in a file of its own, which has no folder for further files.
HostValue decode_alone(const onnx_format::Tensor& tensor) {
  ExternalData none;
  return decode(tensor, none);
}

HostValue read_sequence(const onnx_format::Sequence& source) {
  std::vector<HostValue> values;
  for (const auto& tensor : source.tensor_values()) values.push_back(decode_alone(tensor));
  for (const auto& sequence : source.sequence_values()) values.push_back(read_sequence(sequence));
  return values;
}

HostValue read_optional(const onnx_format::Optional& source) {
  if (source.has_tensor_value()) return decode_alone(source.tensor_value());
  if (source.has_sequence_value()) return read_sequence(source.sequence_value());
  if (source.has_optional_value()) return read_optional(source.optional_value());
  return {};
}

onnx_format::Model parse_message(std::string_view content, const std::string& path) {
  if (content.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    fail(ErrorKind::data, "'{}' has more than 2 GiB, which no ONNX file may have; keep the weights as external data",
         path);
  onnx_format::Model source;
  if (content.empty() || !parse(content, source) || !source.has_graph())
    fail(ErrorKind::data, "'{}' is no ONNX model, or is damaged; export it again, or copy it again", path);
  return source;
}

Model model_of(onnx_format::Model source, const std::string& path, const std::filesystem::path& folder) {
  Model model;
  model.path = path;
  model.ir_version = source.ir_version();
  model.producer = source.producer_name();
  if (!source.producer_version().empty()) model.producer += " " + source.producer_version();
  model.opsets = read_opsets(source.opset_import());
  for (const auto& entry : source.metadata_props()) model.metadata[entry.key()] = entry.value();
  Reader reader(folder);
  try {
    model.graph = reader.take(*source.mutable_graph());
    for (const auto& function : source.functions()) {
      Function read{function.name(), function.domain(), function.overload(), {}, {}, {}, {}, {}};
      if (read.domain == "ai.onnx") read.domain.clear();
      read.inputs.assign(function.input().begin(), function.input().end());
      read.outputs.assign(function.output().begin(), function.output().end());
      for (const auto& name : function.attribute()) read.attributes[name];
      for (const auto& attribute : function.attribute_proto())
        read.attributes[attribute.name()] = reader.read(attribute);
      for (const auto& node : function.node()) read.nodes.push_back(reader.read(node));
      read.opsets = read_opsets(function.opset_import());
      model.functions.push_back(std::move(read));
    }
  } catch (const Error& error) {
    fail(error.kind(), "'{}': {}", path, error.what());
  }
  return model;
}

}  // namespace

Model read_model(const std::filesystem::path& path) {
  auto folder = path.parent_path();
  if (folder.empty()) folder = ".";
  const auto parse_file = [&] {  // what it maps of the file goes before weights are copied out of the message
    const MappedFile file(path);
    return parse_message(text_of(file), path.string());
  };
  return model_of(parse_file(), path.string(), folder);
}

Model parse_model(std::string_view content, const std::string& path, const std::filesystem::path& folder) {
  return model_of(parse_message(content, path), path, folder);
}

HostValue read_value(const std::filesystem::path& path, ValueInfo::Kind kind) {
  const MappedFile file(path);
  const std::string_view content = text_of(file);
  const auto damaged = [&] { fail(ErrorKind::data, "'{}' holds no value as ONNX writes it", path.string()); };
  if (kind == ValueInfo::Kind::sequence) {
    onnx_format::Sequence sequence;
    if (!parse(content, sequence)) damaged();
    return read_sequence(sequence);
  }
  if (kind == ValueInfo::Kind::optional) {
    onnx_format::Optional optional;
    if (!parse(content, optional)) damaged();
    return read_optional(optional);
  }
  onnx_format::Tensor tensor;
  if (!parse(content, tensor)) damaged();
  return decode_alone(tensor);
}

}  // namespace weft::onnx
