#include "weft/passes/layout/assign_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "weft/base/error.h"
#include "weft/graph/kept.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

class LayoutAssigner {
 public:
  LayoutAssigner(const Graph& graph, const Backend& backend) : graph_(graph), backend_(backend), rewriter_(graph) {
    std::vector<bool> is_result = find_results(graph);
    for (const GraphInput& input : graph.inputs()) {
      const bool is_state = input.kind == InputKind::parameter || input.kind == InputKind::state;
      const bool is_free = is_state && !is_result[index_of(input.value)] && graph.type(input.value).layout.is_plain();
      free_.push_back(is_free);
    }
  }

  Graph run() {
    for (size_t index = 0; index < graph_.nodes().size(); ++index) assign(node_at(index));
    return finish();
  }

 private:
  Graph& result() { return rewriter_.result(); }
  const TensorType& type(ValueId value) { return result().type(value); }

  /// What the backend sees of a node: the operands as they are now, the results still plain.
  NodeSignature signature(NodeId id) {
    NodeSignature signature = signature_of(graph_, id);
    for (size_t input = 0; input < signature.inputs.size(); ++input)
      signature.inputs[input] = type(rewriter_.map(graph_.node(id).inputs[input]));
    return signature;
  }

  /// True until something has read the parameter or state: its layout may still be chosen. Casts do not count.
  bool is_free(ValueId value) const { return index_of(value) < free_.size() && free_[index_of(value)]; }

  /// Whether the cast that made `value` can read its operand and write its result in these layouts.
  bool can_cast(ValueId value, const Layout& from, const Layout& to) {
    NodeSignature signature = signature_of(result(), result().value(value).producer);
    signature.inputs[0].layout = from;
    signature.outputs[0].layout = to;
    return backend_.supports_layouts(signature);
  }

  /// Whether all casts that have read a free parameter can read it in this layout.
  bool casts_can_read(ValueId value, const Layout& layout) {
    const auto [begin, end] = casts_of_.equal_range(value);
    return std::all_of(begin, end,
                       [&](const auto& entry) { return can_cast(entry.second, layout, type(entry.second).layout); });
  }

  /// True where the layout of `value` may be chosen and was: a parameter's or a cast's by its first reader.
  bool choose(ValueId value, const Layout& layout) {
    if (is_free(value)) {
      free_[index_of(value)] = false;
      if (!casts_can_read(value, layout)) return false;
    } else if (open_casts_.erase(value) == 0 || !can_cast(value, type(operand_of(value)).layout, layout)) {
      return false;
    }
    result().set_layout(value, layout);
    return true;
  }

  ValueId operand_of(ValueId cast) { return result().producer(cast)->inputs[0]; }

  /// The value in another layout: itself, an earlier copy of it, or a new reorder.
  ValueId in_layout(ValueId value, const Layout& layout) {
    if (type(value).layout == layout) {
      if (is_free(value)) free_[index_of(value)] = false;
      open_casts_.erase(value);
      return value;
    }
    if (choose(value, layout)) return value;
    const auto origin = origins_.find(value);
    const ValueId from = origin == origins_.end() ? value : origin->second;
    if (type(from).layout == layout) return from;
    const auto [known, is_new] = copies_.try_emplace({from, to_string(layout)});
    if (is_new) {
      const std::string suffix = layout.is_plain() ? "plain" : to_string(layout);
      known->second = result().add("reorder", {from}, {}, result().value(from).name + "." + suffix);
      result().set_layout(known->second, layout);
      origins_.emplace(known->second, from);
    }
    return known->second;
  }

  /// Adds the node with its operands brought into the signature's layouts, and the results declared in theirs.
  void emit(NodeId id, const NodeSignature& signature) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> operands;
    for (size_t input = 0; input < node.inputs.size(); ++input)
      operands.push_back(in_layout(rewriter_.map(node.inputs[input]), signature.inputs[input].layout));
    copy_with(rewriter_, id, operands, node.attributes);
    for (size_t output = 0; output < node.outputs.size(); ++output)
      result().set_layout(rewriter_.map(node.outputs[output]), signature.outputs[output].layout);
  }

  void assign(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op->name == "reorder") {  // from an earlier run: its layout is what its readers wanted
      const Layout layout = graph_.type(node.outputs[0]).layout;
      rewriter_.replace(node.outputs[0], in_layout(rewriter_.map(node.inputs[0]), layout));
      return;
    }
    if (node.op->name == "cast") return assign_cast(id);
    if (is_renewal(node)) return emit_renewal(id);
    NodeSignature plain = signature(id);
    const std::vector<TensorType> now = plain.inputs;
    for (TensorType& input : plain.inputs) input.layout = {};
    if (node.op->is_update) return emit(id, update_layouts(node, plain, now));
    NodeSignature wanted = plain;
    if (node.op->layout_rule == LayoutRule::kernel) {
      NodeSignature current = plain;
      current.inputs = now;
      if (const auto choice = backend_.preferred_layouts(current)) {
        for (size_t input = 0; input < now.size(); ++input) wanted.inputs[input].layout = choice->inputs[input];
        for (size_t output = 0; output < wanted.outputs.size(); ++output)
          wanted.outputs[output].layout = choice->outputs[output];
      }
      return emit(id, wanted);
    }
    if (node.op->layout_rule == LayoutRule::elementwise) {
      const Shape shape = plain.outputs[0].shape;
      set_layouts(wanted, common_layout(now, shape), [&](const TensorType& operand) { return operand.shape == shape; });
    } else if (node.op->layout_rule == LayoutRule::channelwise) {
      const Layout layout = now[main_operand(*node.op, now)].layout;
      set_layouts(wanted, layout, [](const TensorType& operand) { return operand.shape.rank() == 4; });
    }
    const bool supported = wanted.inputs == plain.inputs || backend_.supports_layouts(wanted);
    emit(id, supported ? wanted : plain);
  }

  /// A cast takes its operand as it is, and leaves the layout of its result to the first reader.
  void assign_cast(NodeId id) {
    NodeSignature cast = signature(id);
    cast.outputs[0].layout = cast.inputs[0].layout;
    if (!cast.inputs[0].layout.is_plain() && !backend_.supports_layouts(cast))
      cast.inputs[0].layout = cast.outputs[0].layout = {};
    const ValueId source = rewriter_.map(graph_.node(id).inputs[0]);
    const bool stays_free = is_free(source) && type(source).layout == cast.inputs[0].layout;
    emit(id, cast);
    const ValueId value = rewriter_.map(graph_.node(id).outputs[0]);
    open_casts_.insert(value);
    if (!stays_free) return;
    free_[index_of(source)] = true;
    casts_of_.emplace(source, value);
  }

  /// From an earlier run: it reads its source in whatever layout that has, and has its copy's.
  void emit_renewal(NodeId id) {
    NodeSignature renewal = signature(id);
    renewal.outputs[0].layout = renewal.inputs[0].layout;
    emit(id, renewal);
  }

  template <typename Predicate>
  static void set_layouts(NodeSignature& signature, const Layout& layout, Predicate&& shares) {
    for (auto* types : {&signature.inputs, &signature.outputs})
      for (TensorType& operand : *types)
        if (shares(operand)) operand.layout = layout;
  }

  /// The layout that most operands of the full shape have; plain ones do not count, the first wins a tie.
  static Layout common_layout(const std::vector<TensorType>& operands, const Shape& shape) {
    Layout best;
    int64_t most = 0;
    for (const TensorType& candidate : operands) {
      if (candidate.shape != shape || candidate.layout.is_plain()) continue;
      const int64_t votes = std::count(operands.begin(), operands.end(), candidate);
      if (votes > most) best = candidate.layout;
      most = std::max(most, votes);
    }
    return best;
  }

  /// The operand that the other images follow: the activation "input" where there is one, so that gradients take its
  /// layout; else the first image.
  static size_t main_operand(const OpDef& op, const std::vector<TensorType>& operands) {
    size_t first = operands.size();
    for (size_t index = operands.size(); index-- > 0;) {
      if (operands[index].shape.rank() != 4) continue;
      first = index;
      if (index < op.inputs.size() && op.inputs[index] == "input") return index;
    }
    return first == operands.size() ? 0 : first;
  }

  /// Updates walk over memory element by element: everything of the state's shape takes the state's layout. A state
  /// that nothing has read yet follows the other operands.
  NodeSignature update_layouts(const Node& node, NodeSignature signature, const std::vector<TensorType>& now) {
    check(!node.op->in_place.empty(), "an update names no state that it replaces");
    const size_t state = static_cast<size_t>(node.op->in_place.front().second);
    ValueId value = rewriter_.map(node.inputs[state]);
    TensorType state_type = type(value);
    if (is_free(value)) {
      const Layout layout = common_layout(now, state_type.shape);
      if (casts_can_read(value, layout)) state_type.layout = layout;
    }
    set_layouts(signature, state_type.layout,
                [&](const TensorType& operand) { return operand.shape == state_type.shape; });
    return signature;
  }

  /// A parameter that nothing but casts reads, for its gradient goes elsewhere than into an update of its own: it
  /// takes the layout of a state that is named after it, such as the sum of its gradients.
  void follow_slots() {
    for (const GraphInput& input : graph_.inputs()) {
      if (!is_free(input.value) || !casts_of_.contains(input.value)) continue;
      for (const GraphInput& slot : graph_.inputs()) {
        const Layout& layout = type(slot.value).layout;
        if (slot.kind != InputKind::state || layout.is_plain() || !slot.name.ends_with("/" + input.name) ||
            type(slot.value).shape != type(input.value).shape)
          continue;
        choose(input.value, layout);
        break;
      }
    }
  }

  /// Outputs become plain, successors take the layout of their state.
  Graph finish() {
    follow_slots();
    for (const GraphOutput& output : graph_.outputs())
      result().add_output(output.name, in_layout(rewriter_.map(output.value), {}));
    for (const StateUpdate& update : graph_.updates()) {
      const Layout layout = type(result().find_input(update.state)->value).layout;
      result().add_update(update.state, in_layout(rewriter_.map(update.value), layout));
    }
    check_supported(result());
    return std::move(result());
  }

  void check_supported(const Graph& graph) const {
    for (size_t index = 0; index < graph.nodes().size(); ++index) {
      const Node& node = graph.nodes()[index];
      if (node.op->layout_rule != LayoutRule::plain || node.op->is_update) continue;
      for (const ValueId input : node.inputs)
        if (!graph.type(input).layout.is_plain())
          fail(ErrorKind::internal, "internal error: after assign_layouts: '{}' ({}) cannot read '{}' as {}",
               graph.node_name(node_at(index)), node.op->name, graph.value(input).name, to_string(graph.type(input)));
    }
  }

  const Graph& graph_;
  const Backend& backend_;
  Rewriter rewriter_;
  std::vector<bool> free_;                                     // per graph input
  std::map<std::pair<ValueId, std::string>, ValueId> copies_;  // (value, layout) -> its reorder
  std::map<ValueId, ValueId> origins_;                         // reorder -> the value it copies
  std::set<ValueId> open_casts_;                               // casts whose result nothing has read yet
  std::multimap<ValueId, ValueId> casts_of_;                   // free parameter -> the casts that have read it
};

}  // namespace

Graph assign_layouts(const Graph& graph, const Backend& backend) { return LayoutAssigner(graph, backend).run(); }

}  // namespace weft::passes
