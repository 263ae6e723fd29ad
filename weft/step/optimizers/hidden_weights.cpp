#include "weft/step/optimizers/hidden_weights.h"

namespace weft::step {

namespace {

bool is_linear_map(const std::string& op) {
  return op == "matmul" || op.starts_with("conv2d") || op.starts_with("conv_transpose");
}
bool rearranges(const std::string& op) { return op == "reshape" || op == "transpose" || op == "cast"; }

class Layers {
 public:
  Layers(const Graph& graph, const std::vector<ValueId>& parameters)
      : graph_(graph), origin_(graph.values().size(), -1), weight_(graph.nodes().size(), -1) {
    for (size_t index = 0; index < parameters.size(); ++index)
      if (graph.shape(parameters[index]).rank() >= 2) origin_[position(parameters[index])] = static_cast<int>(index);
    for (size_t index = 0; index < graph.nodes().size(); ++index) {
      const Node& node = graph.nodes()[index];
      if (rearranges(node.op->name)) origin_[position(node.outputs[0])] = origin_[position(node.inputs[0])];
      if (!is_linear_map(node.op->name) && node.op->name != "embedding") continue;
      for (const ValueId input : node.inputs)
        if (origin_[position(input)] >= 0) weight_[index] = origin_[position(input)];
    }
  }

  std::vector<bool> hidden(size_t parameters) const {
    // Does anything learnt come before a node, does another layer come after it?
    std::vector<bool> learnt(graph_.values().size(), false), used(graph_.values().size(), false);
    std::vector<bool> comes_late(parameters, false), comes_early(parameters, false), embeds(parameters, false);
    const auto& nodes = graph_.nodes();
    for (size_t index = 0; index < nodes.size(); ++index) {
      bool any = false;
      for (const ValueId input : nodes[index].inputs) any = any || learnt[position(input)];
      if (weight_[index] >= 0) {
        const auto weight = static_cast<size_t>(weight_[index]);
        if (any) comes_late[weight] = true;
        if (!is_linear_map(nodes[index].op->name)) embeds[weight] = true;
      }
      for (const ValueId output : nodes[index].outputs) learnt[position(output)] = any || weight_[index] >= 0;
    }
    for (size_t index = nodes.size(); index-- > 0;) {
      bool any = false;
      for (const ValueId output : nodes[index].outputs) any = any || used[position(output)];
      if (weight_[index] >= 0 && any) comes_early[static_cast<size_t>(weight_[index])] = true;
      if (any || weight_[index] >= 0)
        for (const ValueId input : nodes[index].inputs) used[position(input)] = true;
    }
    std::vector<bool> result(parameters);
    for (size_t index = 0; index < parameters; ++index)
      result[index] = comes_late[index] && comes_early[index] && !embeds[index];
    return result;
  }

 private:
  static size_t position(ValueId value) { return static_cast<size_t>(value.index); }

  const Graph& graph_;
  std::vector<int> origin_;  // per value: the parameter that it shows, or -1
  std::vector<int> weight_;  // per node: the parameter that it applies, or -1
};

}  // namespace

std::vector<bool> find_hidden_weights(const Graph& forward, const std::vector<ValueId>& parameters) {
  return Layers(forward, parameters).hidden(parameters.size());
}

}  // namespace weft::step
