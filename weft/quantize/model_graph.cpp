#include "weft/quantize/model_graph.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/onnx/lower/lower.h"

namespace weft::quantize {

using onnx::OnnxGraph;
using onnx::OnnxNode;

namespace {

int64_t integer_attribute(const OnnxNode& node, const std::string& name, int64_t fallback) {
  const auto found = node.attributes.find(name);
  const int64_t* value = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second.value);
  return value == nullptr ? fallback : *value;
}

double real_attribute(const OnnxNode& node, const std::string& name, double fallback) {
  const auto found = node.attributes.find(name);
  const float* value = found == node.attributes.end() ? nullptr : std::get_if<float>(&found->second.value);
  return value == nullptr ? fallback : static_cast<double>(*value);
}

/// One number per output, where the tensor's only wide axis is that of the outputs, so many axes from the end.
std::optional<std::vector<float>> per_output(const Tensor& tensor, int64_t outputs, int from_end) {
  if (tensor.dtype() != DType::f32 || tensor.elements() != outputs) return std::nullopt;
  const Shape& shape = tensor.shape();
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1 && shape.rank() - axis != from_end) return std::nullopt;
  return std::vector<float>(tensor.data_as<float>(), tensor.data_as<float>() + outputs);
}

std::optional<Layer> find_layer(const OnnxGraph& graph, size_t index) {
  const OnnxNode& node = graph.nodes[index];
  if (!node.domain.empty() || node.inputs.size() < 2 || node.outputs.empty()) return std::nullopt;
  const bool is_convolution = node.op == "Conv", is_gemm = node.op == "Gemm";
  if (!is_convolution && !is_gemm && node.op != "MatMul") return std::nullopt;
  const auto found = graph.initializers.find(node.inputs[1]);
  const Tensor* weight = found == graph.initializers.end() ? nullptr : found->second.tensor();
  if (weight == nullptr || weight->dtype() != DType::f32) return std::nullopt;
  const Shape& shape = weight->shape();
  if (is_convolution ? shape.rank() < 3 || shape.rank() > 4 : shape.rank() != 2) return std::nullopt;
  if (is_gemm && (integer_attribute(node, "transA", 0) != 0 || real_attribute(node, "alpha", 1) != 1 ||
                  real_attribute(node, "beta", 1) != 1))
    return std::nullopt;
  Layer layer{.node = index,
              .name = node.inputs[1],
              .input = node.inputs[0],
              .output = node.outputs[0],
              .weight = node.inputs[1],
              .is_convolution = is_convolution,
              .is_transposed = is_gemm && integer_attribute(node, "transB", 0) != 0};
  layer.outputs = shape[static_cast<int>(layer.weight_axis(shape.rank()))];
  if (layer.outputs == 0 || weight->elements() == 0) return std::nullopt;
  layer.inputs = weight->elements() / layer.outputs;
  layer.groups = is_convolution ? integer_attribute(node, "group", 1) : 1;
  if (layer.groups < 1 || layer.outputs % layer.groups != 0) return std::nullopt;
  return layer;
}

/// The operand of a sum that is a bias of the layer.
std::optional<std::vector<float>> added_bias(const OnnxGraph& graph, const Layer& layer, const OnnxNode& sum) {
  const std::string& other = sum.inputs[sum.inputs[0] == layer.output ? 1 : 0];
  const auto tensor = known_tensor(graph, other);
  const int rank = graph.initializers.at(layer.weight).tensor()->shape().rank();
  // One of more dimensions than the layer's output gives the sum more, too.
  const bool keeps_rank = tensor && tensor->shape().rank() <= (layer.is_convolution ? rank : 2);
  return keeps_rank ? per_output(*tensor, layer.outputs, layer.is_convolution ? rank - 1 : 1) : std::nullopt;
}

/// The node reads what the layer makes and passes it on under its own name: the layer makes that from now on.
void take_over_output(OnnxGraph& graph, const Layer& layer, size_t reader) {
  graph.nodes[layer.node].outputs[0] = graph.nodes[reader].outputs[0];
  // Operands of the reader may have been computed behind the layer: only constants are.
  graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(reader));
}

bool fold_sum(OnnxGraph& graph, const Layer& layer, size_t reader) {
  const OnnxNode& sum = graph.nodes[reader];
  if (sum.op != "Add" || !sum.domain.empty() || sum.inputs.size() != 2) return false;
  const auto added = added_bias(graph, layer, sum);
  if (!added || graph.nodes[layer.node].op == "MatMul") return false;
  std::vector<float> bias = bias_of(graph, layer);
  bias.resize(added->size(), 0);
  for (size_t at = 0; at < bias.size(); ++at) bias[at] += (*added)[at];
  set_bias(graph, layer, bias);
  take_over_output(graph, layer, reader);
  return true;
}

/// w' = w scale / sqrt(variance + epsilon), b' = (b - mean) scale / sqrt(variance + epsilon) + shift, in double.
bool fold_batch_norm(OnnxGraph& graph, const Layer& layer, size_t reader) {
  const OnnxNode& norm = graph.nodes[reader];
  if (norm.op != "BatchNormalization" || !norm.domain.empty() || norm.inputs.size() != 5 || norm.outputs.size() != 1 ||
      norm.inputs[0] != layer.output || !layer.is_convolution || integer_attribute(norm, "training_mode", 0) != 0)
    return false;
  std::vector<Tensor> statistics;
  for (size_t input = 1; input < 5; ++input) {
    const auto tensor = known_tensor(graph, norm.inputs[input]);
    if (!tensor || tensor->dtype() != DType::f32 || tensor->elements() != layer.outputs) return false;
    statistics.push_back(*tensor);
  }
  const double epsilon = real_attribute(norm, "epsilon", 1e-5);
  const Tensor& old_weight = *graph.initializers.at(layer.weight).tensor();
  Matrix weights = matrix_of(layer, old_weight);
  std::vector<float> bias = bias_of(graph, layer);
  bias.resize(static_cast<size_t>(layer.outputs), 0);
  for (int64_t row = 0; row < layer.outputs; ++row) {
    const auto number = [&](size_t which) { return static_cast<double>(statistics[which].data_as<float>()[row]); };
    const double factor = number(0) / std::sqrt(number(3) + epsilon);
    for (int64_t column = 0; column < layer.inputs; ++column)
      weights.row(row)[column] = static_cast<float>(static_cast<double>(weights.row(row)[column]) * factor);
    float& own = bias[static_cast<size_t>(row)];
    own = static_cast<float>((static_cast<double>(own) - number(2)) * factor + number(1));
  }
  set_weight(graph, layer, tensor_of(layer, weights, old_weight.shape()));
  set_bias(graph, layer, bias);
  take_over_output(graph, layer, reader);
  return true;
}

}  // namespace

ValueUses::ValueUses(const OnnxGraph& graph) {
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    for (const std::string& output : graph.nodes[index].outputs)
      if (!output.empty()) producer[output] = index;
    std::set<std::string> inner = onnx::names_read_by(graph.nodes[index]);
    for (const std::string& input : graph.nodes[index].inputs) {
      if (!input.empty()) readers[input].push_back(index);
      inner.erase(input);
    }
    for (const std::string& name : inner) readers[name].push_back(index);
  }
  for (const onnx::ValueInfo& output : graph.outputs) outputs.insert(output.name);
}

std::optional<size_t> ValueUses::only_reader(const std::string& value) const {
  const auto found = readers.find(value);
  if (outputs.contains(value) || found == readers.end() || found->second.size() != 1) return std::nullopt;
  return found->second.front();
}

namespace {

constexpr int kMostSteps = 64;  // from a value back to its tensor; nodes that read each other have no end

/// The tensor in the shape that the numbers say, with a -1 for what is left; nullopt where it has none such.
std::optional<Tensor> reshaped(const Tensor& tensor, const Tensor& numbers) {
  if (numbers.dtype() != DType::i64) return std::nullopt;
  std::vector<int64_t> dims(numbers.data_as<int64_t>(), numbers.data_as<int64_t>() + numbers.elements());
  const auto open = std::find(dims.begin(), dims.end(), -1);
  if (open != dims.end()) *open = 1;
  // Sizes of 0 may mean those of the operand.
  if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 1; })) return std::nullopt;
  if (!has_bounded_size(Shape(dims))) return std::nullopt;
  if (open != dims.end()) *open = tensor.elements() / Shape(dims).elements();
  if (Shape(dims).elements() != tensor.elements()) return std::nullopt;
  return tensor.reinterpreted({tensor.dtype(), Shape(dims), {}});
}

std::optional<Tensor> find_tensor(const OnnxGraph& graph, const std::string& value, int steps) {
  const auto initializer = graph.initializers.find(value);
  if (initializer != graph.initializers.end()) {
    const Tensor* tensor = initializer->second.tensor();
    return tensor == nullptr ? std::nullopt : std::optional(*tensor);
  }
  const auto producer = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const OnnxNode& node) {
    return !node.outputs.empty() && node.outputs[0] == value;
  });
  if (producer == graph.nodes.end() || steps == 0) return std::nullopt;
  const OnnxNode& node = *producer;
  if (node.op == "Constant") {
    const auto attribute = node.attributes.find("value");
    if (attribute == node.attributes.end()) return std::nullopt;
    const auto* held = std::get_if<onnx::HostValue>(&attribute->second.value);
    return held != nullptr && held->tensor() != nullptr ? std::optional(*held->tensor()) : std::nullopt;
  }
  if (node.op == "Identity" && node.inputs.size() == 1) return find_tensor(graph, node.inputs[0], steps - 1);
  if (node.op != "Reshape" || node.inputs.size() != 2) return std::nullopt;
  const auto inner = find_tensor(graph, node.inputs[0], steps - 1);
  const auto numbers = inner ? find_tensor(graph, node.inputs[1], steps - 1) : std::nullopt;
  return numbers ? reshaped(*inner, *numbers) : std::nullopt;
}

}  // namespace

std::optional<Tensor> known_tensor(const OnnxGraph& graph, const std::string& value) {
  return find_tensor(graph, value, kMostSteps);
}

std::vector<Layer> find_layers(const OnnxGraph& graph) {
  std::vector<Layer> layers;
  for (size_t index = 0; index < graph.nodes.size(); ++index)
    if (auto layer = find_layer(graph, index)) layers.push_back(*std::move(layer));
  return layers;
}

Matrix matrix_of(const Layer& layer, const Tensor& weight) {
  Matrix matrix{layer.outputs, layer.inputs, std::vector<float>(static_cast<size_t>(weight.elements()))};
  const float* from = weight.data_as<float>();
  const bool rows_first = layer.weight_axis(weight.shape().rank()) == 0;
  for (int64_t row = 0; row < layer.outputs; ++row)
    for (int64_t column = 0; column < layer.inputs; ++column)
      matrix.row(row)[column] = from[rows_first ? row * layer.inputs + column : column * layer.outputs + row];
  return matrix;
}

Tensor tensor_of(const Layer& layer, const Matrix& weights, const Shape& shape) {
  Tensor tensor(DType::f32, shape);
  const bool rows_first = layer.weight_axis(shape.rank()) == 0;
  for (int64_t row = 0; row < layer.outputs; ++row)
    for (int64_t column = 0; column < layer.inputs; ++column)
      tensor.data_as<float>()[rows_first ? row * layer.inputs + column : column * layer.outputs + row] =
          weights.row(row)[column];
  return tensor;
}

std::vector<float> bias_of(const OnnxGraph& graph, const Layer& layer) {
  const OnnxNode& node = graph.nodes[layer.node];
  if (node.inputs.size() < 3 || node.inputs[2].empty()) return {};
  const auto tensor = known_tensor(graph, node.inputs[2]);
  const auto bias = tensor ? per_output(*tensor, layer.outputs, 1) : std::nullopt;
  if (bias) return *bias;
  if (tensor && tensor->dtype() == DType::f32 && tensor->elements() == 1)
    return std::vector<float>(static_cast<size_t>(layer.outputs), tensor->data_as<float>()[0]);
  fail(ErrorKind::usage, "[{}] weft quantizes biases that the file holds, one number for each output",
       onnx::describe(node));
}

void set_bias(OnnxGraph& graph, const Layer& layer, const std::vector<float>& bias) {
  OnnxNode& node = graph.nodes[layer.node];
  const std::string name = fresh_name(graph, layer.name + ".bias");
  graph.initializers[name] = Tensor::of(Shape{static_cast<int64_t>(bias.size())}, bias);
  if (node.inputs.size() < 3) node.inputs.resize(3);
  node.inputs[2] = name;
}

void set_weight(OnnxGraph& graph, const Layer& layer, const Tensor& weight) {
  graph.initializers[layer.weight] = weight;
}

void separate_weights(OnnxGraph& graph) {
  const ValueUses uses(graph);
  const std::vector<Layer> layers = find_layers(graph);
  std::map<std::string, size_t> layers_of;  // by weight
  for (const Layer& layer : layers) ++layers_of[layer.weight];
  std::set<std::string> kept;
  for (const Layer& layer : layers) {
    const bool is_of_layers_alone =
        uses.readers.at(layer.weight).size() == layers_of.at(layer.weight) && !uses.outputs.contains(layer.weight);
    if (is_of_layers_alone && kept.insert(layer.weight).second) continue;
    const std::string own = fresh_name(graph, layer.weight);
    graph.initializers[own] = graph.initializers.at(layer.weight);
    graph.nodes[layer.node].inputs[1] = own;
  }
}

void fold_layers(OnnxGraph& graph) {
  separate_weights(graph);
  for (bool has_folded = true; has_folded;) {
    has_folded = false;
    const ValueUses uses(graph);
    for (const Layer& layer : find_layers(graph)) {
      const auto reader = uses.only_reader(layer.output);
      if (!reader) continue;
      has_folded = fold_sum(graph, layer, *reader) || fold_batch_norm(graph, layer, *reader);
      if (has_folded) break;  // nodes have moved
    }
  }
  drop_unread(graph);
}

std::string fresh_name(const OnnxGraph& graph, const std::string& hint) {
  const auto is_taken = [&](const std::string& name) {
    if (graph.initializers.contains(name)) return true;
    for (const onnx::ValueInfo& input : graph.inputs)
      if (input.name == name) return true;
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const OnnxNode& node) {
      return std::find(node.outputs.begin(), node.outputs.end(), name) != node.outputs.end();
    });
  };
  std::string name = hint;
  for (int count = 2; is_taken(name); ++count) name = fmt::format("{}_{}", hint, count);
  return name;
}

void drop_unread(OnnxGraph& graph) {
  std::set<std::string> read;
  for (const onnx::ValueInfo& output : graph.outputs) read.insert(output.name);
  std::vector<OnnxNode> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool is_read = std::any_of(node->outputs.begin(), node->outputs.end(),
                                     [&](const std::string& name) { return read.contains(name); });
    if (!is_read) continue;
    read.merge(onnx::names_read_by(*node));
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
  std::erase_if(graph.initializers, [&](const auto& entry) { return !read.contains(entry.first); });
}

}  // namespace weft::quantize
