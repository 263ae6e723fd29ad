#include "weft/onnx/train/parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/onnx/file/tensor_format.h"
#include "weft/onnx/lower/normalize.h"
#include "weft/tensor/element.h"

namespace weft::onnx {

namespace {

using Inner = std::shared_ptr<const OnnxGraph>;

class Widening {
 public:
  explicit Widening(const OnnxGraph& graph) {
    for (const auto& [name, value] : graph.initializers)
      if (const Tensor* tensor = value.tensor(); tensor != nullptr && tensor->elements() > 1)
        widens_f64_ = widens_f64_ || tensor->dtype() == DType::f64;
  }

  void widen(OnnxGraph& graph) const {
    for (auto* infos : {&graph.inputs, &graph.outputs})
      for (ValueInfo& info : *infos) widen(info);
    for (auto& [name, info] : graph.values) widen(info);
    for (auto& [name, value] : graph.initializers) widen(value);
    for (OnnxNode& node : graph.nodes)
      for (auto& [name, attribute] : node.attributes) {
        if (auto* value = std::get_if<HostValue>(&attribute.value)) widen(*value);
        if (auto* info = std::get_if<ValueInfo>(&attribute.value)) widen(*info);
        if (auto* number = std::get_if<int64_t>(&attribute.value); number != nullptr && node.domain.empty())
          widen_type(name, *number);
        if (const auto* inner = std::get_if<Inner>(&attribute.value)) {
          OnnxGraph own = **inner;
          widen(own);
          attribute.value = std::make_shared<const OnnxGraph>(std::move(own));
        }
      }
  }

 private:
  bool is_widened(DType dtype) const {
    return is_floating(dtype) && dtype != DType::f32 && (dtype != DType::f64 || widens_f64_);
  }
  void widen(ValueInfo& info) const {
    if (info.dtype && is_widened(*info.dtype)) info.dtype = DType::f32;
  }
  void widen(HostValue& value) const {
    const Tensor* tensor = value.tensor();
    if (tensor == nullptr || !is_widened(tensor->dtype())) return;
    Tensor wide(DType::f32, tensor->shape());
    for (int64_t index = 0; index < wide.elements(); ++index)
      convert_element(tensor->dtype(), tensor->data(), index, DType::f32, wide.data(), index);
    value = wide;
  }
  /// Of an attribute that names a type.
  void widen_type(const std::string& name, int64_t& number) const {
    static const std::set<std::string> kTypes{
        "to", "dtype", "output_dtype", "output_datatype", "precision", "softmax_precision"};
    if (!kTypes.contains(name)) return;
    const auto dtype = dtype_of(static_cast<int32_t>(number));
    if (dtype && is_widened(*dtype)) number = data_type_of(DType::f32);
  }

  bool widens_f64_ = false;
};

/// Of weights that a file keeps in f16 for a network in f32.
void drop_casts_of_tensors(OnnxGraph& graph) {
  for (OnnxNode& node : graph.nodes) {
    if (node.op != "Cast" || !node.domain.empty() || node.inputs.size() != 1) continue;
    const auto found = graph.initializers.find(node.inputs[0]);
    const Tensor* tensor = found == graph.initializers.end() ? nullptr : found->second.tensor();
    const auto to = node.attributes.find("to");
    const auto* number = to == node.attributes.end() ? nullptr : std::get_if<int64_t>(&to->second.value);
    if (tensor == nullptr || tensor->dtype() != DType::f32 || number == nullptr) continue;
    if (*number != data_type_of(DType::f32)) continue;
    node.op = "Identity";
    node.attributes.clear();
  }
  skip_identities(graph);
}

/// Operands that are weights.
const std::map<std::string, std::set<size_t>> kWeights{{"Conv", {1, 2}},
                                                       {"ConvTranspose", {1, 2}},
                                                       {"DeformConv", {1, 3}},
                                                       {"MatMul", {0, 1}},
                                                       {"Gemm", {0, 1, 2}},
                                                       {"Einsum", {0, 1}},
                                                       {"Gather", {0}},
                                                       {"PRelu", {1}},
                                                       {"BatchNormalization", {1, 2, 3, 4}},
                                                       {"InstanceNormalization", {1, 2}},
                                                       {"LayerNormalization", {1, 2}},
                                                       {"GroupNormalization", {1, 2}},
                                                       {"RMSNormalization", {1}},
                                                       {"RNN", {1, 2, 3}},
                                                       {"GRU", {1, 2, 3}},
                                                       {"LSTM", {1, 2, 3, 7}}};
/// Operands whose numbers decide sizes or values, though they are reals.
const std::map<std::string, std::set<size_t>> kSettings{{"Resize", {1, 2}}, {"Upsample", {1}}, {"OneHot", {2}}};
/// To their results a bias is added.
const std::set<std::string> kLayers{"Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum"};

bool has(const std::map<std::string, std::set<size_t>>& operands, const OnnxNode& node, size_t input) {
  const auto found = operands.find(node.op);
  return found != operands.end() && node.domain.empty() && found->second.contains(input);
}

/// [C], [1,C,1,1] and the like: no mask over pairs of positions.
bool has_one_wide_axis(const Shape& shape) {
  int wide = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) wide += shape[axis] > 1 ? 1 : 0;
  return wide == 1;
}

}  // namespace

void widen_reals(Model& model) {
  Widening(model.graph).widen(model.graph);
  drop_casts_of_tensors(model.graph);
}

std::set<std::string> find_parameters(const OnnxGraph& graph, const std::set<std::string>& stored) {
  std::set<std::string> trainable, weights, settings, sums;
  for (const auto& [name, value] : graph.initializers)
    if (const Tensor* tensor = value.tensor())
      if (tensor->dtype() == DType::f32 && tensor->elements() > 1) trainable.insert(name);
  for (const OnnxNode& node : graph.nodes) {
    bool has_weights = false;
    for (size_t input = 0; input < node.inputs.size(); ++input) {
      const std::string& name = node.inputs[input];
      if (!trainable.contains(name)) continue;
      if (has(kSettings, node, input)) settings.insert(name);
      const std::string& other = node.inputs[input == 0 ? node.inputs.size() - 1 : 0];
      const bool is_bias =
          node.op == "Add" && sums.contains(other) && has_one_wide_axis(graph.initializers.at(name).tensor()->shape());
      if (!is_bias && !has(kWeights, node, input)) continue;
      weights.insert(name);
      has_weights = true;
    }
    if (has_weights && kLayers.contains(node.op)) sums.insert(node.outputs.begin(), node.outputs.end());
  }
  std::erase_if(trainable, [&](const std::string& name) {
    return settings.contains(name) || (!stored.contains(name) && !weights.contains(name));
  });
  return trainable;
}

std::string tensors_in_words(const OnnxGraph& graph) {
  std::map<std::string, int> counts;
  for (const auto& [name, value] : graph.initializers) {
    const Tensor* tensor = value.tensor();
    const bool is_wide = tensor != nullptr && tensor->elements() > 1;
    ++counts[is_wide ? std::string(name_of(tensor->dtype())) : describe(value)];
  }
  for (const auto& [name, why] : graph.unusable_initializers) ++counts["'" + name + "', which " + why];
  std::string words;
  for (const auto& [kind, count] : counts) words += fmt::format("{}{} of {}", words.empty() ? "" : ", ", count, kind);
  return words.empty() ? "none" : words;
}

}  // namespace weft::onnx
