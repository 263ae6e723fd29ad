#include "weft/onnx/train/last_layer.h"

#include <algorithm>
#include <array>
#include <vector>

#include "weft/base/error.h"
#include "weft/onnx/operators/context.h"

namespace weft::onnx {

namespace {

OnnxNode* producer_of(Model& model, const std::string& value) {
  for (OnnxNode& node : model.graph.nodes)
    if (std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end()) return &node;
  return nullptr;
}

const Tensor* weight_of(const Model& model, const std::string& name) {
  const auto found = model.graph.initializers.find(name);
  return found == model.graph.initializers.end() ? nullptr : found->second.tensor();
}

/// With another size along the axis.
Tensor resized(const Tensor& tensor, int axis, int64_t size) {
  Shape shape = tensor.shape();
  shape[axis] = size;
  return Tensor(tensor.dtype(), shape);
}

struct LastLayer {
  std::string weight, bias;              // the bias may be absent
  int output_axis = 0;                   // of the weight
  std::vector<OnnxNode*> reshapes = {};  // behind it, whose shapes may state the number of classes
};

/// From the output backwards, through what leaves each class by itself.
LastLayer find_last_layer(Model& model) {
  constexpr std::array<std::string_view, 9> kThrough{
      "Identity", "Flatten", "Reshape", "Squeeze", "Transpose", "GlobalAveragePool", "ReduceMean", "Dropout", "Cast"};
  std::string value = model.graph.outputs.at(0).name, bias;
  std::vector<OnnxNode*> reshapes;
  for (OnnxNode* node = producer_of(model, value); node != nullptr; node = producer_of(model, value)) {
    if (node->op == "Gemm" && weight_of(model, node->inputs.at(1)) != nullptr) {
      const bool is_turned = NodeAttributes(*node, 13).integer("transB", 0) != 0;
      return {node->inputs[1], node->inputs.size() > 2 ? node->inputs[2] : bias, is_turned ? 0 : 1, reshapes};
    }
    if (node->op == "MatMul" && weight_of(model, node->inputs.at(1)) != nullptr)
      return {node->inputs[1], bias, weight_of(model, node->inputs[1])->shape().rank() - 1, reshapes};
    if (node->op == "Conv" && weight_of(model, node->inputs.at(1)) != nullptr)
      return {node->inputs[1], node->inputs.size() > 2 ? node->inputs[2] : bias, 0, reshapes};
    if (node->op == "Add") {
      const int side = weight_of(model, node->inputs.at(1)) != nullptr ? 1 : 0;
      if (weight_of(model, node->inputs[static_cast<size_t>(side)]) == nullptr) break;
      bias = node->inputs[static_cast<size_t>(side)];
      value = node->inputs[static_cast<size_t>(1 - side)];
      continue;
    }
    if (std::find(kThrough.begin(), kThrough.end(), node->op) == kThrough.end()) break;
    if (node->op == "Reshape") reshapes.push_back(node);
    value = node->inputs.at(0);
  }
  fail(ErrorKind::usage,
       "[onnx] '{}' does not end with a layer whose outputs could become those of other classes; train it on data with "
       "as "
       "many classes as it has",
       model.path);
}

/// Gives a Reshape whose shape ends with the old number of classes one that ends with the new number. The shape gets a
/// name of its own: other nodes may read the old one.
void end_with_classes(Model& model, OnnxNode& reshape, int64_t old_classes, int64_t classes) {
  const Tensor* const shape = weight_of(model, reshape.inputs.at(1));
  if (shape == nullptr || shape->dtype() != DType::i64 || shape->elements() < 1) return;
  Tensor changed = shape->clone();
  int64_t& last = changed.data_as<int64_t>()[changed.elements() - 1];
  if (last != old_classes) return;
  last = classes;
  const std::string name = reshape.outputs.at(0) + ".shape";
  model.graph.initializers[name] = std::move(changed);
  reshape.inputs[1] = name;
}

}  // namespace

void drop_last_softmax(Model& model) {
  std::string& output = model.graph.outputs.at(0).name;
  const OnnxNode* node = producer_of(model, output);
  while (node != nullptr && (node->op == "Identity" || node->op == "Softmax" || node->op == "LogSoftmax")) {
    const bool is_softmax = node->op != "Identity";
    output = node->inputs.at(0);
    if (is_softmax) return;
    node = producer_of(model, output);
  }
}

FreshLayer with_classes(Model& model, int64_t classes) {
  const ValueInfo& output = model.graph.outputs.at(0);
  const bool has_size = output.shape && !output.shape->empty() && output.shape->back().size;
  if (has_size && *output.shape->back().size == classes) return {};
  const LastLayer layer = find_last_layer(model);
  const Tensor weight = *weight_of(model, layer.weight);
  const int64_t outputs = weight.shape()[layer.output_axis];
  if (outputs == classes) return {};
  for (OnnxNode* const reshape : layer.reshapes) end_with_classes(model, *reshape, outputs, classes);
  FreshLayer fresh;
  fresh.inputs = std::max<int64_t>(1, weight.shape().elements() / std::max<int64_t>(1, outputs));
  fresh.parameters.insert(graph_name(layer.weight));
  model.graph.initializers[layer.weight] = resized(weight, layer.output_axis, classes);
  if (const Tensor* bias = weight_of(model, layer.bias)) {
    int axis = -1;
    for (int each = 0; each < bias->shape().rank(); ++each)
      if (bias->shape()[each] == outputs) axis = each;
    if (axis < 0) return fresh;
    fresh.parameters.insert(graph_name(layer.bias));
    model.graph.initializers[layer.bias] = resized(*bias, axis, classes);
  }
  return fresh;
}

}  // namespace weft::onnx
