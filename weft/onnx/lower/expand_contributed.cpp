#include "weft/onnx/lower/expand_contributed.h"

#include <algorithm>
#include <set>

namespace weft::onnx {

namespace {

constexpr const char* kDomain = "com.microsoft";

/// An operator on reals, with a value in a scale and around a zero point before each operand.
struct Row {
  const char* name;
  const char* real;
  int operands;  // -1: any number, and the result's scale and zero point come first
};
constexpr Row kRows[] = {{"QLinearAdd", "Add", 2},
                         {"QLinearMul", "Mul", 2},
                         {"QLinearSigmoid", "Sigmoid", 1},
                         {"QLinearLeakyRelu", "LeakyRelu", 1},
                         {"QLinearSoftmax", "Softmax", 1},
                         {"QLinearAveragePool", "AveragePool", 1},
                         {"QLinearGlobalAveragePool", "GlobalAveragePool", 1},
                         {"QLinearConcat", "Concat", -1}};

int64_t integer_of(const OnnxNode& node, const std::string& name, int64_t fallback) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return fallback;
  const int64_t* value = std::get_if<int64_t>(&found->second.value);
  return value == nullptr ? fallback : *value;
}

class ContributedExpander {
 public:
  explicit ContributedExpander(OnnxGraph& graph) : graph_(graph) {
    for (const ValueInfo& input : graph.inputs) names_.insert(input.name);
    for (const auto& [name, value] : graph.initializers) names_.insert(name);
    for (const OnnxNode& node : graph.nodes) names_.insert(node.outputs.begin(), node.outputs.end());
  }

  void run() {
    std::vector<OnnxNode> nodes = std::move(graph_.nodes);
    for (OnnxNode& node : nodes)
      if (node.domain != kDomain || !expand(node)) result_.push_back(std::move(node));
    graph_.nodes = std::move(result_);
  }

 private:
  /// False, with nothing done, where the node stays.
  bool expand(OnnxNode& node) {
    if (node.outputs.size() != 1) return false;
    if (node.op == "QuantizeLinear" || node.op == "DequantizeLinear") {
      node.domain.clear();
      return false;
    }
    if (node.op == "QGemm") return expand_gemm(node);
    const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return node.op == r.name; });
    if (row == std::end(kRows) || integer_of(node, "channels_last", 0) != 0) return false;
    if (node.op == "QLinearSoftmax" && integer_of(node, "opset", 13) < 13) return false;
    const bool is_list = row->operands < 0;
    const size_t count = is_list ? (node.inputs.size() + 1) / 3 - 1 : static_cast<size_t>(row->operands);
    const size_t first = is_list ? 2 : 0, result = is_list ? 0 : 3 * count;
    // The last zero point may be left away.
    if (count == 0 || node.inputs.size() < (is_list ? 2 + 3 * count - 1 : 3 * count + 1)) return false;
    std::vector<std::string> operands;
    for (size_t at = 0; at < count; ++at)
      operands.push_back(dequantized(node, input(node, first + 3 * at), input(node, first + 3 * at + 1),
                                     input(node, first + 3 * at + 2)));
    OnnxNode real = make(node, row->real, operands, fresh(node, "real"));
    real.attributes = node.attributes;
    for (const char* own : {"channels_last", "opset"}) real.attributes.erase(own);
    const std::string value = add(std::move(real));
    quantize(node, value, input(node, result), input(node, result + 1));
    return true;
  }

  /// A scale of b per column; a bias of steps of alpha times both scales. Without a scale of the result that is real.
  bool expand_gemm(const OnnxNode& node) {
    if (node.inputs.size() < 6) return false;
    const bool transposes_b = integer_of(node, "transB", 0) != 0;
    std::vector<std::string> operands{
        dequantized(node, input(node, 0), input(node, 1), input(node, 2)),
        dequantized(node, input(node, 3), input(node, 4), input(node, 5), transposes_b ? 0 : 1)};
    if (!input(node, 6).empty()) {
      std::string step = add(make(node, "Mul", {input(node, 1), input(node, 4)}, fresh(node, "step")));
      if (const auto alpha = node.attributes.find("alpha"); alpha != node.attributes.end()) {
        const float* factor = std::get_if<float>(&alpha->second.value);
        const std::string name = fresh(node, "alpha");
        graph_.initializers[name] = Tensor::of(Shape{}, {{factor == nullptr ? 1.0f : *factor}});
        step = add(make(node, "Mul", {step, name}, fresh(node, "step")));
      }
      OnnxNode cast = make(node, "Cast", {input(node, 6)}, fresh(node, "bias"));
      cast.attributes["to"].value = int64_t{1};
      const std::string bias = add(std::move(cast));
      operands.push_back(add(make(node, "Mul", {bias, step}, fresh(node, "bias"))));
    }
    const bool is_quantized = !input(node, 7).empty();
    OnnxNode real = make(node, "Gemm", operands, is_quantized ? fresh(node, "real") : node.outputs[0]);
    for (const char* name : {"alpha", "transA", "transB"})
      if (node.attributes.contains(name)) real.attributes[name] = node.attributes.at(name);
    const std::string value = add(std::move(real));
    if (is_quantized) quantize(node, value, input(node, 7), input(node, 8));
    return true;
  }

  static std::string input(const OnnxNode& node, size_t at) {
    return at < node.inputs.size() ? node.inputs[at] : std::string();
  }

  std::string fresh(const OnnxNode& node, const std::string& what) {
    std::string name = node.outputs[0] + "." + what;
    for (int number = 2; names_.contains(name); ++number) name = node.outputs[0] + "." + what + std::to_string(number);
    names_.insert(name);
    return name;
  }

  static OnnxNode make(const OnnxNode& origin, const std::string& op, std::vector<std::string> inputs,
                       const std::string& output) {
    while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
    OnnxNode node = node_with_output(op, std::move(inputs), output);
    node.name = origin.name;
    return node;
  }

  std::string add(OnnxNode node) {
    result_.push_back(std::move(node));
    return result_.back().outputs[0];
  }

  std::string dequantized(const OnnxNode& origin, const std::string& value, const std::string& scale,
                          const std::string& zero_point, int64_t axis = 1) {
    OnnxNode node = make(origin, "DequantizeLinear", {value, scale, zero_point}, fresh(origin, "operand"));
    node.attributes["axis"].value = axis;
    return add(std::move(node));
  }

  void quantize(const OnnxNode& origin, const std::string& value, const std::string& scale,
                const std::string& zero_point) {
    add(make(origin, "QuantizeLinear", {value, scale, zero_point}, origin.outputs[0]));
  }

  OnnxGraph& graph_;
  std::set<std::string> names_;
  std::vector<OnnxNode> result_;
};

}  // namespace

Model expand_contributed(Model model) {
  ContributedExpander(model.graph).run();
  return model;
}

}  // namespace weft::onnx
