#include "weft/passes/precision/precision_plan.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/graph/marks.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

bool matches(const PrecisionOverride& override, const std::string& op, const std::string& node) {
  return fnmatch(override.pattern.c_str(), op.c_str(), 0) == 0 ||
         fnmatch(override.pattern.c_str(), node.c_str(), 0) == 0;
}

template <size_t count>
bool is_one_of(const std::string& op, const std::array<const char*, count>& names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool has_result_dtype(const OpDef& op) {
  return std::any_of(op.attributes.begin(), op.attributes.end(),
                     [](const AttributeSpec& spec) { return spec.name == "result_dtype"; });
}

class Planner {
 public:
  Planner(const Graph& graph, const PrecisionPolicy& policy)
      : graph_(graph),
        policy_(policy),
        users_(find_users(graph)),
        depends_on_batch_(graph.values().size(), false),
        depends_on_update_(graph.values().size(), false),
        is_exact_(graph.values().size(), false),
        is_narrow_value_(graph.values().size(), false) {}

  PrecisionPlan run() {
    for (const GraphInput& input : graph_.inputs())
      depends_on_batch_[index_of(input.value)] = input.kind == InputKind::batch;
    for (size_t index = 0; index < graph_.nodes().size(); ++index) follow_dependencies(graph_.nodes()[index]);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) rules_.push_back(rule_of(node_at(index)));
    find_ends();
    plan_.is_narrow.assign(graph_.nodes().size(), false);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      plan_.is_narrow[index] = decide(index);
      if (plan_.is_narrow[index]) narrow_results(node_at(index));
    }
    plan_.has_wide_result.assign(graph_.nodes().size(), false);
    for (size_t index = 0; index < graph_.nodes().size(); ++index)
      plan_.has_wide_result[index] = plan_.is_narrow[index] && has_result_dtype(*graph_.nodes()[index].op) &&
                                     !reads_narrow(graph_.nodes()[index].outputs[0]);
    return std::move(plan_);
  }

 private:
  enum class Rule { full, follow, reduced, forced };  // forced: by an override, whatever the operands are

  void follow_dependencies(const Node& node) {
    const auto any = [&](const std::vector<bool>& of_value) {
      return std::any_of(node.inputs.begin(), node.inputs.end(),
                         [&](ValueId input) { return static_cast<bool>(of_value[index_of(input)]); });
    };
    const bool batch = any(depends_on_batch_), update = any(depends_on_update_);
    // Numbers that T holds as well as f32: cheap to cast, they say nothing about what they are used with.
    const std::string& op = node.op->name;
    const bool moves = is_one_of(op, std::array{"reshape", "transpose", "broadcast_to", "slice", "strided_slice"});
    const bool exact = is_one_of(op, std::array{"constant", "equal", "greater", "greater_equal", "one_hot"}) ||
                       (moves && is_exact_[index_of(node.inputs[0])]);
    for (size_t index = 0; index < node.outputs.size(); ++index) {
      const size_t output = index_of(node.outputs[index]);
      depends_on_batch_[output] = batch;
      depends_on_update_[output] = update || replaces_state(*node.op, static_cast<int>(index));
      is_exact_[output] = exact;
    }
  }

  Rule rule_of(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.attributes.has(kExact)) return Rule::full;
    Rule rule = node.op->precision == PrecisionRule::full     ? Rule::full
                : node.op->precision == PrecisionRule::follow ? Rule::follow
                                                              : Rule::reduced;
    for (const PrecisionOverride& override : policy_.overrides)
      if (matches(override, node.op->name, graph_.node_name(id)))
        rule = override.dtype == DType::f32 ? Rule::full : Rule::forced;
    // What is no f32 to begin with is left alone, and so are products of parameters alone.
    bool lowers = false, batch = false;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const TensorType& type = graph_.type(node.inputs[k]);
      if (type.dtype == DType::bf16 || type.dtype == DType::f16) return Rule::full;
      if (depends_on_update_[index_of(node.inputs[k])]) return Rule::full;
      lowers = lowers || takes_narrow(*node.op, k, type);
      batch = batch || depends_on_batch_[index_of(node.inputs[k])];
    }
    if (!lowers || (rule == Rule::reduced && !batch)) return Rule::full;
    return rule;
  }

  /// True for what may lie between the last product, normalisation or pooling and a loss.
  bool may_end(size_t node) const {
    return rules_[node] == Rule::follow && graph_.nodes()[node].op->layout_rule != LayoutRule::channelwise;
  }

  /// Makes what comes last full: what only full nodes read, and what lies on the way to an output.
  void find_ends() {
    std::vector<bool> all(graph_.nodes().size(), true);
    std::vector<bool> ends = find_ends_in(all, /*stops_at_sums=*/true);
    for (const GraphOutput& output : graph_.outputs()) {
      // Others, such as a gradient beside its update, lie within the network.
      if (!users_[index_of(output.value)].empty()) continue;
      const std::vector<bool> more = find_ends_in(ancestors_of(output.value), /*stops_at_sums=*/false);
      for (size_t index = 0; index < ends.size(); ++index) ends[index] = ends[index] || more[index];
    }
    for (size_t index = 0; index < ends.size(); ++index)
      if (ends[index]) rules_[index] = Rule::full;
  }

  std::vector<bool> ancestors_of(ValueId value) const {
    std::vector<bool> is_ancestor(graph_.nodes().size(), false);
    if (const NodeId producer = graph_.value(value).producer; producer.valid()) is_ancestor[index_of(producer)] = true;
    for (size_t index = graph_.nodes().size(); index-- > 0;) {
      if (!is_ancestor[index]) continue;
      for (const ValueId input : graph_.nodes()[index].inputs)
        if (const NodeId producer = graph_.value(input).producer; producer.valid())
          is_ancestor[index_of(producer)] = true;
    }
    return is_ancestor;
  }

  /// Of a part of the graph: the nodes whose every reader in it is one of them, or full, or takes that operand in f32.
  /// Sums whose result can be f32 need no operand in f32.
  std::vector<bool> find_ends_in(const std::vector<bool>& part, bool stops_at_sums) const {
    std::vector<bool> ends(graph_.nodes().size(), false);
    for (size_t index = graph_.nodes().size(); index-- > 0;) {
      const Node& node = graph_.nodes()[index];
      if (!part[index] || !may_end(index) || (stops_at_sums && has_result_dtype(*node.op))) continue;
      bool all_end = true;
      for (const ValueId output : node.outputs)
        for (const NodeId user : users_[index_of(output)])
          all_end = all_end && (!part[index_of(user)] || ends[index_of(user)] || reads_in_f32(user, output));
      ends[index] = all_end;
    }
    return ends;
  }

  bool reads_in_f32(NodeId user, ValueId value) const {
    if (rules_[index_of(user)] == Rule::full) return true;
    const Node& node = graph_.node(user);
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k] == value && takes_narrow(*node.op, k, graph_.type(value))) return false;
    return true;
  }

  bool decide(size_t index) const {
    switch (rules_[index]) {
      case Rule::full:
        return false;
      case Rule::reduced:
      case Rule::forced:
        return true;
      case Rule::follow:
        break;
    }
    const Node& node = graph_.nodes()[index];
    const Shape& shape = graph_.shape(node.outputs[0]);
    std::vector<ValueId> activations, of_full_shape;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId input = node.inputs[k];
      if (!takes_narrow(*node.op, k, graph_.type(input)) || !depends_on_batch_[index_of(input)] ||
          is_exact_[index_of(input)])
        continue;
      activations.push_back(input);
      if (graph_.shape(input) == shape) of_full_shape.push_back(input);
    }
    const std::vector<ValueId>& leading = of_full_shape.empty() ? activations : of_full_shape;
    return !leading.empty() && std::all_of(leading.begin(), leading.end(), [&](ValueId input) {
      return static_cast<bool>(is_narrow_value_[index_of(input)]);
    });
  }

  /// Asks the op's shape rule which results of a narrow node are T.
  void narrow_results(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<TensorType> types;
    std::vector<std::string> names;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      types.push_back(graph_.type(node.inputs[k]));
      if (takes_narrow(*node.op, k, types.back())) types.back().dtype = policy_.dtype;
      names.push_back(graph_.value(node.inputs[k]).name);
    }
    std::vector<TensorType> results;
    try {
      results = node.op->infer({*node.op, graph_.node_name(id), types, names, node.attributes});
    } catch (const Error&) {
      if (rules_[index_of(id)] != Rule::forced) throw;
      fail(ErrorKind::usage, "[{}] '{}' computes in f32 only; take it out of what is to compute in {}", node.op->name,
           graph_.node_name(id), name_of(policy_.dtype));
    }
    for (size_t k = 0; k < results.size(); ++k)
      is_narrow_value_[index_of(node.outputs[k])] = results[k].dtype == policy_.dtype;
  }

  bool reads_narrow(ValueId value) const {
    for (const NodeId user : users_[index_of(value)]) {
      const Node& node = graph_.node(user);
      if (!plan_.is_narrow[index_of(user)]) continue;
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (node.inputs[k] == value && takes_narrow(*node.op, k, graph_.type(value))) return true;
    }
    return false;
  }

  const Graph& graph_;
  const PrecisionPolicy& policy_;
  const std::vector<std::vector<NodeId>> users_;
  std::vector<bool> depends_on_batch_, depends_on_update_, is_exact_, is_narrow_value_;  // per value
  std::vector<Rule> rules_;                                                              // per node
  PrecisionPlan plan_;
};

}  // namespace

PrecisionPlan plan_precision(const Graph& graph, const PrecisionPolicy& policy) { return Planner(graph, policy).run(); }

bool takes_narrow(const OpDef& op, size_t operand, const TensorType& type) {
  return type.dtype == DType::f32 &&
         std::count(op.f32_inputs.begin(), op.f32_inputs.end(), static_cast<int>(operand)) == 0;
}

void require_matches(const Graph& graph, const PrecisionPolicy& policy) {
  for (const PrecisionOverride& override : policy.overrides) {
    bool any = false;
    std::vector<std::string> known;
    for (size_t index = 0; index < graph.nodes().size(); ++index) {
      known.push_back(graph.node_name(node_at(index)));
      any = any || matches(override, graph.nodes()[index].op->name, known.back());
    }
    if (any) continue;
    const std::string nearest = nearest_name(override.pattern, known);
    fail(ErrorKind::usage, "precision_of: '{}' matches no node and no op of the step{}; `weft graph` shows their names",
         override.pattern, nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
  }
}

}  // namespace weft::passes
