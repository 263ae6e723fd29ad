#include "weft/passes/clean/join_pads.h"

#include <algorithm>
#include <optional>

#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

/// What lies at [begin, end) of an axis of a padded value.
struct Part {
  ValueId value;
  int64_t axis, begin, end;
};

class PartsOfSums {
 public:
  explicit PartsOfSums(const Graph& graph)
      : graph_(graph), users_(find_users(graph)), is_result_(find_results(graph)) {}

  /// In their order along the axis; empty where the sum is none of parts that fill it.
  std::vector<Part> of(const Node& sum) const {
    std::vector<Part> parts;
    if (sum.op->name != "add" || !collect(sum, parts)) return {};
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
    int64_t filled = 0;
    for (const Part& part : parts) {
      if (part.axis != parts.front().axis || part.begin != filled) return {};
      filled = part.end;
    }
    const Shape& shape = graph_.shape(sum.outputs[0]);
    return filled == shape[static_cast<int>(parts.front().axis)] ? parts : std::vector<Part>{};
  }

 private:
  /// The paddings that the sum adds up; false where it adds anything else.
  bool collect(const Node& sum, std::vector<Part>& parts) const {
    return std::all_of(sum.inputs.begin(), sum.inputs.end(), [&](const ValueId operand) {
      const Node* node = graph_.producer(operand);
      if (node == nullptr || graph_.shape(operand) != graph_.shape(sum.outputs[0])) return false;
      if (node->op->name == "add") return is_read_once(operand) && collect(*node, parts);
      const auto part = part_of(*node);
      if (part) parts.push_back(*part);
      return part.has_value();
    });
  }

  std::optional<Part> part_of(const Node& pad) const {
    if (pad.op->name != "pad" || pad.attributes.exact_integer("value") || pad.attributes.real("value") != 0)
      return std::nullopt;
    const auto &low = pad.attributes.integers("low"), &high = pad.attributes.integers("high");
    std::optional<Part> part;
    for (size_t axis = 0; axis < low.size(); ++axis) {
      if (low[axis] == 0 && high[axis] == 0) continue;
      if (part) return std::nullopt;
      const int64_t size = graph_.shape(pad.inputs[0])[static_cast<int>(axis)];
      part = Part{pad.inputs[0], static_cast<int64_t>(axis), low[axis], low[axis] + size};
    }
    return part;
  }

  bool is_read_once(ValueId value) const { return users_[index_of(value)].size() == 1 && !is_result_[index_of(value)]; }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> is_result_;
};

}  // namespace

Graph join_pads(const Graph& graph) {
  const PartsOfSums parts_of_sums(graph);
  Rewriter rewriter(graph);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id = node_at(index);
    const Node& node = graph.node(id);
    const std::vector<Part> parts = parts_of_sums.of(node);
    if (parts.empty()) {
      rewriter.copy(id);
      continue;
    }
    std::vector<ValueId> values;
    for (const Part& part : parts) values.push_back(rewriter.map(part.value));
    rewriter.replace(node.outputs[0],
                     rewriter.result().add("concat", values, {{"axis", parts.front().axis}}, graph.node_name(id)));
  }
  return rewriter.finish();
}

}  // namespace weft::passes
