#include "weft/quantize/conversions.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/tensor/element.h"

namespace weft::quantize {

using onnx::OnnxGraph;
using onnx::OnnxNode;

namespace {

const std::set<std::string> kActivations{"Relu", "Clip"};
const std::set<std::string> kMovers{"MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"};

Tensor number(DType dtype, int64_t value) {
  Tensor tensor(dtype, Shape{});
  store_number(dtype, tensor.data(), 0, value);
  return tensor;
}

class Writer {
 public:
  Writer(onnx::Model& model, const Conversions& conversions) : model_(model), conversions_(conversions) {}

  void run() {
    const std::vector<Layer> layers = find_layers(graph());
    for (const Layer& layer : layers)
      if (const auto found = conversions_.layers.find(layer.name); found != conversions_.layers.end())
        convert_layer(layer, found->second);
    const ValueUses uses(graph());
    for (const auto& [value, source] : conversions_.shared)
      if (conversions_.scales.contains(source)) convert_value(value, source, uses);
    insert_nodes();
  }

 private:
  OnnxGraph& graph() { return model_.graph; }

  /// Behind the node that makes the value, or at the beginning.
  void convert_value(const std::string& value, const std::string& source, const ValueUses& uses) {
    if (!uses.readers.contains(value)) return;
    const Scale& scale = conversions_.scales.at(source);
    const DType dtype = conversions_.is_signed ? DType::i8 : DType::u8;
    const std::string base = fresh_name(graph(), value + ".quantized");
    graph().initializers[base + ".scale"] = Tensor::of(Shape{}, {{scale.scale}});
    graph().initializers[base + ".zero_point"] = number(dtype, scale.zero_point);
    const std::vector<std::string> factors{base + ".scale", base + ".zero_point"};
    std::vector<OnnxNode>& place = behind_[value];
    place.push_back(onnx::node_with_output("QuantizeLinear", {value, factors[0], factors[1]}, base));
    place.push_back(onnx::node_with_output("DequantizeLinear", {base, factors[0], factors[1]}, base + ".reals"));
    for (OnnxNode& node : graph().nodes)
      for (std::string& input : node.inputs)
        if (input == value) input = base + ".reals";
  }

  void insert_nodes() {
    std::vector<OnnxNode> nodes = std::move(first_);
    for (const onnx::ValueInfo& input : graph().inputs) append(nodes, input.name);
    for (OnnxNode& node : graph().nodes) {
      const std::vector<std::string> outputs = node.outputs;
      nodes.push_back(std::move(node));
      for (const std::string& output : outputs) append(nodes, output);
    }
    graph().nodes = std::move(nodes);
  }
  void append(std::vector<OnnxNode>& nodes, const std::string& value) {
    const auto found = behind_.find(value);
    if (found != behind_.end()) nodes.insert(nodes.end(), found->second.begin(), found->second.end());
  }

  static DType integers_of_bits(int bits) { return bits >= 7 ? DType::i8 : bits == 4 ? DType::i4 : DType::i2; }

  void convert_layer(const Layer& layer, const QuantizedLayer& quantized) {
    const Tensor old_weight = *graph().initializers.at(layer.weight).tensor();
    const Shape& shape = old_weight.shape();
    const int64_t axis = layer.weight_axis(shape.rank());
    const std::string base = fresh_name(graph(), layer.weight + ".quantized");
    Tensor integers(integers_of_bits(quantized.bits), shape);
    const IntegerMatrix& matrix = quantized.weights;
    for (int64_t row = 0; row < matrix.rows; ++row)
      for (int64_t column = 0; column < matrix.columns; ++column)
        store_number(integers.dtype(), integers.data(),
                     axis == 0 ? row * matrix.columns + column : column * matrix.rows + row,
                     int64_t{matrix.integers[static_cast<size_t>(row * matrix.columns + column)]});
    graph().initializers[base] = integers;
    graph().initializers[base + ".scale"] = scales_of_layer(quantized, axis);
    OnnxNode node = onnx::node_with_output("DequantizeLinear", {base, base + ".scale"}, base + ".reals");
    if (quantized.by_groups) {
      node.attributes["axis"].value = axis == 0 ? int64_t{1} : int64_t{0};
      node.attributes["block_size"].value = matrix.group;
    } else {
      const Shape factors = quantized.per_channel ? Shape{layer.outputs} : Shape{};
      graph().initializers[base + ".zero_point"] = Tensor(integers.dtype(), factors);
      node.inputs.push_back(base + ".zero_point");
      if (quantized.per_channel) node.attributes["axis"].value = axis;
    }
    first_.push_back(node);
    graph().nodes[layer.node].inputs[1] = base + ".reals";
    if (!quantized.bias.empty()) convert_bias(layer, quantized, base);
  }

  static Tensor scales_of_layer(const QuantizedLayer& quantized, int64_t axis) {
    const IntegerMatrix& matrix = quantized.weights;
    if (!quantized.by_groups && !quantized.per_channel) return Tensor::of(Shape{}, {{matrix.scales.front()}});
    if (!quantized.by_groups) return Tensor::of(Shape{matrix.rows}, matrix.scales);
    const int64_t groups = matrix.groups();
    if (axis == 0) return Tensor::of(Shape{matrix.rows, groups}, matrix.scales);
    Tensor turned(DType::f32, Shape{groups, matrix.rows});
    for (int64_t row = 0; row < matrix.rows; ++row)
      for (int64_t group = 0; group < groups; ++group)
        turned.data_as<float>()[group * matrix.rows + row] = matrix.scales[static_cast<size_t>(row * groups + group)];
    return turned;
  }

  /// In steps of the sum: the input's scale times the weight's. Reals where the input is real.
  void convert_bias(const Layer& layer, const QuantizedLayer& quantized, const std::string& base) {
    const auto shared = conversions_.shared.find(layer.input);
    const auto input =
        shared == conversions_.shared.end() ? conversions_.scales.end() : conversions_.scales.find(shared->second);
    if (quantized.by_groups || input == conversions_.scales.end()) {
      set_bias(graph(), layer, quantized.bias);
      return;
    }
    Tensor integers(DType::i32, Shape{layer.outputs}), scales(DType::f32, Shape{layer.outputs});
    for (int64_t row = 0; row < layer.outputs; ++row) {
      const float step =
          input->second.scale * quantized.weights.scales[static_cast<size_t>(quantized.per_channel ? row : 0)];
      const double steps = static_cast<double>(quantized.bias[static_cast<size_t>(row)]) / static_cast<double>(step);
      scales.data_as<float>()[row] = step;
      integers.data_as<int32_t>()[row] = static_cast<int32_t>(std::clamp(std::nearbyint(steps), -0x1p31, 0x1p31 - 1));
    }
    graph().initializers[base + ".bias"] = integers;
    graph().initializers[base + ".bias.scale"] = scales;
    OnnxNode node =
        onnx::node_with_output("DequantizeLinear", {base + ".bias", base + ".bias.scale"}, base + ".bias.reals");
    node.attributes["axis"].value = int64_t{0};
    first_.push_back(node);
    OnnxNode& owner = graph().nodes[layer.node];
    if (owner.inputs.size() < 3) owner.inputs.resize(3);
    owner.inputs[2] = base + ".bias.reals";
  }

  onnx::Model& model_;
  const Conversions& conversions_;
  std::vector<OnnxNode> first_;                          // conversions of constants
  std::map<std::string, std::vector<OnnxNode>> behind_;  // by the value that they convert
};

}  // namespace

namespace {

/// Behind the activations that alone read a value.
std::string behind_activations(const OnnxGraph& graph, const ValueUses& uses, std::string value) {
  for (auto reader = uses.only_reader(value); reader && kActivations.contains(graph.nodes[*reader].op);
       reader = uses.only_reader(value))
    value = graph.nodes[*reader].outputs[0];
  return value;
}

/// Whether a node computes with its operand's integers, or passes them on.
bool takes_integers(const OnnxGraph& graph, const ValueUses& uses, const std::map<std::string, std::string>& converted,
                    const std::set<std::string>& layer_inputs, size_t reader, const std::string& value) {
  const OnnxNode& node = graph.nodes[reader];
  if (layer_inputs.contains(value) && (node.op == "Conv" || node.op == "Gemm" || node.op == "MatMul")) return true;
  if (kMovers.contains(node.op) || node.op == "Concat") return converted.contains(node.outputs[0]);
  if (node.op == "BatchNormalization")
    return value == node.inputs[0] && layer_inputs.contains(behind_activations(graph, uses, node.outputs[0])) &&
           converted.contains(behind_activations(graph, uses, node.outputs[0]));
  return node.op == "Add" && converted.contains(node.inputs[0]) && converted.contains(node.inputs[1]) &&
         converted.contains(behind_activations(graph, uses, node.outputs[0]));
}

/// Values that are joined, of which none is the model's input or a constant: where a layer reads the whole, maybe
/// behind a normalisation, or it is joined again.
bool is_worth_joining(const OnnxGraph& graph, const ValueUses& uses, const std::set<std::string>& layer_inputs,
                      const std::map<std::string, std::string>& converted, const OnnxNode& node) {
  for (const std::string& input : node.inputs)
    if (graph.initializers.contains(input) || uses.outputs.contains(input)) return false;
  const bool some_are_integers = std::any_of(node.inputs.begin(), node.inputs.end(),
                                             [&](const std::string& input) { return converted.contains(input); });
  const auto readers = uses.readers.find(node.outputs[0]);
  if (!some_are_integers || readers == uses.readers.end()) return false;
  return std::any_of(readers->second.begin(), readers->second.end(), [&](size_t reader) {
    const OnnxNode& next = graph.nodes[reader];
    return next.op == "Concat" || layer_inputs.contains(node.outputs[0]) ||
           (next.op == "BatchNormalization" && layer_inputs.contains(behind_activations(graph, uses, next.outputs[0])));
  });
}

/// Integers are joined as they are where all have one scale: that of the last whole, whose range holds all of its
/// parts.
void share_scales_of_joined(const OnnxGraph& graph, std::map<std::string, std::string>& converted) {
  std::map<std::string, std::string> whole_of;  // of a source of scales: that which it is joined into
  const auto find = [&](std::string source) {
    for (auto next = whole_of.find(source); next != whole_of.end() && next->second != source;
         next = whole_of.find(source))
      source = next->second;
    return source;
  };
  for (const OnnxNode& node : graph.nodes) {
    if (node.op != "Concat" || !converted.contains(node.outputs[0])) continue;
    const std::string whole = node.outputs[0];
    for (const std::string& input : node.inputs)
      if (const auto found = converted.find(input); found != converted.end())
        if (const std::string source = find(found->second); source != whole) whole_of[source] = whole;
  }
  for (auto& [value, source] : converted) source = find(source);
}

}  // namespace

std::map<std::string, std::string> find_converted(const OnnxGraph& graph, const std::vector<Layer>& layers) {
  const ValueUses uses(graph);
  std::map<std::string, std::string> converted;
  std::set<std::string> layer_inputs;
  const auto add = [&](const std::string& value) {
    if (!uses.outputs.contains(value)) converted.emplace(value, value);
  };
  for (const Layer& layer : layers) {
    converted.emplace(layer.input, layer.input);
    layer_inputs.insert(layer.input);
    add(behind_activations(graph, uses, layer.output));
  }
  for (const OnnxNode& node : graph.nodes) {
    if (node.inputs.empty() || node.outputs.empty() || uses.outputs.contains(node.outputs[0])) continue;
    if (node.op == "Add" && node.inputs.size() == 2 && converted.contains(node.inputs[0]) &&
        converted.contains(node.inputs[1]))
      add(behind_activations(graph, uses, node.outputs[0]));
    if (node.op == "Concat" && is_worth_joining(graph, uses, layer_inputs, converted, node)) {
      add(node.outputs[0]);
      for (const std::string& input : node.inputs) add(input);
    }
    // What is moved has the scale of where it comes from.
    if (kMovers.contains(node.op) && node.outputs.size() == 1 && converted.contains(node.inputs[0]))
      converted[node.outputs[0]] = converted.at(node.inputs[0]);
  }
  // Nobody takes some as integers: they stay real.
  for (bool is_stable = false; !is_stable;) {
    is_stable = true;
    for (auto entry = converted.begin(); entry != converted.end();) {
      const auto readers = uses.readers.find(entry->first);
      const bool is_taken = readers != uses.readers.end() &&
                            std::any_of(readers->second.begin(), readers->second.end(), [&](size_t reader) {
                              return takes_integers(graph, uses, converted, layer_inputs, reader, entry->first);
                            });
      is_stable = is_stable && is_taken;
      entry = is_taken ? std::next(entry) : converted.erase(entry);
    }
  }
  share_scales_of_joined(graph, converted);
  return converted;
}

std::map<std::string, std::string> joined_values(const OnnxGraph& graph,
                                                 const std::map<std::string, std::string>& converted) {
  std::map<std::string, std::string> joined;
  for (const OnnxNode& node : graph.nodes)
    if (const auto found = node.op == "Concat" ? converted.find(node.outputs[0]) : converted.end();
        found != converted.end())
      joined.insert(*found);
  return joined;
}

void add_conversions(onnx::Model& model, const Conversions& conversions) { Writer(model, conversions).run(); }

}  // namespace weft::quantize
