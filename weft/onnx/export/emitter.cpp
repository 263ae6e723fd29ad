#include "weft/onnx/export/emitter.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/constant_node.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

Emitter::Emitter(const ExportRequest& request) : request_(request) {
  for (const Value& value : request.graph.values()) used_[value.name] = 1;
}

std::string Emitter::name(ValueId value) const {
  const auto found = names_.find(value.index);
  return found != names_.end() ? found->second : graph().value(value).name;
}

std::string Emitter::fresh(const std::string& hint) {
  const int count = used_[hint]++;
  if (count == 0) return hint;
  return fresh(fmt::format("{}_{}", hint, count + 1));
}

void Emitter::add_node(const std::string& op, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs,
                       const std::map<std::string, AttributeContent>& attributes) {
  OnnxNode node;
  node.op = op;
  node.inputs = inputs;
  node.outputs = outputs;
  for (const std::string& output : outputs)
    if (!output.empty() && node.name.empty()) node.name = output;
  for (const auto& [key, value] : attributes) node.attributes[key].value = value;
  result_.nodes.push_back(std::move(node));
}

std::string Emitter::add(const std::string& op, const std::vector<std::string>& inputs,
                         const std::map<std::string, AttributeContent>& attributes, const std::string& output) {
  std::string hint = op;
  std::transform(hint.begin(), hint.end(), hint.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string result = output.empty() ? fresh(hint) : output;
  add_node(op, inputs, {result}, attributes);
  return result;
}

std::string Emitter::constant(const Tensor& tensor, const std::string& hint) {
  const std::string name = fresh(hint);
  result_.initializers[name] = tensor;
  return name;
}

std::string Emitter::integers(const std::vector<int64_t>& values, const std::string& hint) {
  Tensor tensor(DType::i64, Shape{static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.data_as<int64_t>());
  return constant(tensor, hint);
}

std::string Emitter::number(double value, DType dtype, const std::string& hint) {
  Tensor tensor(dtype, Shape{});
  store_element(dtype, tensor.data(), 0, value);
  return constant(tensor, hint);
}

std::string Emitter::batch_size() {
  if (!batch_.empty()) return batch_;
  const std::string shape = add("Shape", {result_.inputs.at(0).name}, {}, fresh("batch.shape"));
  batch_ = add("Gather", {shape, integers({0}, "batch.axis")}, {{"axis", int64_t{0}}}, fresh("batch.size"));
  return batch_;
}

std::string Emitter::sizes(const std::vector<Size>& values) {
  if (std::all_of(values.begin(), values.end(), [](const Size& size) { return size.is_fixed(); })) {
    std::vector<int64_t> fixed;
    for (const Size& size : values) fixed.push_back(size.constant);
    return integers(fixed);
  }
  std::vector<std::string> parts;
  std::vector<int64_t> run;
  const auto finish_run = [&] {
    if (!run.empty()) parts.push_back(integers(run));
    run.clear();
  };
  for (const Size& size : values) {
    if (size.is_fixed()) {
      run.push_back(size.constant);
      continue;
    }
    finish_run();
    std::string part = batch_size();
    if (size.factor != 1) part = add("Mul", {part, integers({size.factor})});
    if (size.constant != 0) part = add("Add", {part, integers({size.constant})});
    parts.push_back(part);
  }
  finish_run();
  return parts.size() == 1 ? parts[0] : add("Concat", parts, {{"axis", int64_t{0}}});
}

Size Emitter::size_of(int64_t value, int64_t other) const {
  if (request_.other == nullptr || value == other) return {value, 0};
  const int64_t difference = request_.other_batch - request_.batch;
  check(difference != 0 && (other - value) % difference == 0, "a size depends on the batch otherwise than by a factor");
  const int64_t factor = (other - value) / difference;
  return {value - factor * request_.batch, factor};
}

std::vector<Size> Emitter::shape(ValueId value) const {
  std::vector<Size> result;
  const Shape& here = graph().shape(value);
  const Shape& there = request_.other == nullptr ? here : request_.other->shape(value);
  for (int axis = 0; axis < here.rank(); ++axis) result.push_back(size_of(here[axis], there[axis]));
  return result;
}

std::vector<Size> Emitter::attribute_sizes(NodeId node, const std::string& name) const {
  const auto& here = graph().node(node).attributes.integers(name);
  const auto& there = request_.other == nullptr ? here : request_.other->node(node).attributes.integers(name);
  std::vector<Size> result;
  for (size_t index = 0; index < here.size(); ++index) result.push_back(size_of(here[index], there[index]));
  return result;
}

std::optional<Tensor> Emitter::known(ValueId value) const {
  const Node* node = graph().producer(value);
  if (node == nullptr) {
    const auto found = request_.parameters.find(graph().value(value).name);
    return found == request_.parameters.end() ? std::nullopt : std::optional(found->second);
  }
  if (is_constant_tensor(*node)) return constant_of(*node)->tensor();
  if (node->op->is_view) {
    const auto inner = known(node->inputs[0]);
    return inner ? std::optional(inner->reinterpreted(graph().type(value))) : std::nullopt;
  }
  if (node->op->name != "add") return std::nullopt;  // the sum of two biases
  const auto left = known(node->inputs[0]), right = known(node->inputs[1]);
  if (!left || !right || left->type() != right->type() || left->dtype() != DType::f32) return std::nullopt;
  Tensor sum(left->type());
  for (int64_t index = 0; index < sum.elements(); ++index)
    sum.data_as<float>()[index] = left->data_as<float>()[index] + right->data_as<float>()[index];
  return sum;
}

void Emitter::fail(NodeId node, const std::string& message) const {
  weft::fail(ErrorKind::usage, "[{}] '{}' cannot be written as ONNX: {}", graph().node(node).op->name,
             graph().node_name(node), message);
}

}  // namespace weft::onnx
