#include "weft/passes/ranks/dimension_forms.h"

#include <algorithm>
#include <limits>
#include <set>

#include "weft/base/error.h"
#include "weft/graph/accumulation.h"
#include "weft/graph/collective.h"
#include "weft/passes/ranks/dimension_rules.h"
#include "weft/passes/ranks/weight_splits.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

using ValueForm = DimensionForm;
using FormKind = DimensionForm::Kind;
using NodeRole = DimensionRole;
using RoleKind = DimensionRole::Kind;

constexpr int kMostOfTokens = 3;  // dimensions: sequences, tokens, width
// Costs are in bytes that travel. Of work that all ranks do alike, in place of a share each:
constexpr double kFlopsPerByte = 100, kMemoryPerByte = 16;
constexpr double kOfState = 1000;  // to gather a weight that is split to save memory

Joined joined_of(const DimensionRule& rule, size_t output) {
  return output < rule.joined.size() ? rule.joined[output] : Joined::sum;
}

class DimensionFinder {
 public:
  DimensionFinder(const Graph& graph, const DimensionOptions& options)
      : graph_(graph),
        options_(options),
        ranks_(options.axis.size),
        users_(find_users(graph)),
        is_result_(find_results(graph)),
        wanted_(graph.nodes().size()),
        decided_(options.states) {
    for (const Node& node : graph.nodes()) forms_.rules.push_back(rule_of(graph, node));
    for (const GraphInput& input : graph.inputs()) inputs_[input.value.index] = &input;
    for (const StateUpdate& update : graph.updates()) successors_[update.value.index] = update.state;
    for (const auto& [value, state] : options.results) {
      is_result_[index_of(value)] = true;
      successors_[value.index] = state;
    }
  }

  DimensionForms find() {
    do {
      spread();
    } while (look_back());
    forms_.states = decided_;
    return std::move(forms_);
  }

 private:
  /// A way to compute a node, and what it costs.
  struct Way {
    NodeRole role;
    double cost = std::numeric_limits<double>::infinity();
  };

  ValueForm& form(ValueId value) { return forms_.of_value[index_of(value)]; }
  const ValueForm& form(ValueId value) const { return forms_.of_value[index_of(value)]; }
  bool is(ValueId value, FormKind kind) { return form(value).kind == kind; }
  bool is_number(ValueId value) const { return graph_.type(value).elements() == 1; }
  double bytes(ValueId value) const { return static_cast<double>(graph_.type(value).bytes()); }
  double share() const { return static_cast<double>(ranks_ - 1) / static_cast<double>(ranks_); }
  void spread() {
    forms_.of_value.assign(graph_.values().size(), {});
    forms_.of_node.assign(graph_.nodes().size(), {});
    forms_.scattered.assign(graph_.values().size(), std::nullopt);
    is_whole_too_.assign(graph_.values().size(), false);
    is_flag_.assign(graph_.values().size(), false);
    for (const auto& [name, split] : std::map(decided_)) set_state(name, split);
    for (const std::string& name : options_.terms)
      if (const GraphInput* input = graph_.find_input(name)) form(input->value).kind = FormKind::sum;
    for (size_t index = 0; index < graph_.nodes().size(); ++index) visit(index);
  }

  void set_state(const std::string& name, const DimensionSplit& split) {
    const GraphInput* const input = graph_.find_input(name);
    if (input == nullptr) return;
    part_shape(sharding_of(graph_.shape(input->value), split, options_.axis));  // which must be one
    form(input->value) = {FormKind::split, split};
    decided_[name] = split;
    const auto slots = options_.slots.find(name);
    if (slots == options_.slots.end()) return;
    for (const std::string& slot : slots->second) {
      const GraphInput* const state = graph_.find_input(slot);
      if (state == nullptr || graph_.shape(state->value) != graph_.shape(input->value)) continue;
      form(state->value) = {FormKind::split, split};
      decided_[slot] = split;
    }
  }

  bool is_forward(size_t index) const {
    return options_.last_of_forward && static_cast<int32_t>(index) <= options_.last_of_forward->index;
  }

  void visit(size_t index) {
    const Node& node = graph_.nodes()[index];
    if (is_forward(index)) decide_weights(index);
    const Way way = cheapest(index);
    forms_.of_node[index] = way.role;
    note_scattered(index);
    apply(index, way.role);
    if (is_forward(index) && way.role.kind == RoleKind::label && !works_on_rows(index)) lead_followers(index, way.role);
    for (size_t input = 0; input < node.inputs.size(); ++input)
      if (wants_whole(index, input)) is_whole_too_[index_of(node.inputs[input])] = true;
    if (node.op->name == "multiply" && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId value) {
          return is_flag_[index_of(value)] || is(value, FormKind::all);
        }))
      is_flag_[index_of(node.outputs[0])] = true;
    if (forms_.rules[index])
      for (size_t output = 0; output < node.outputs.size(); ++output)
        if (joined_of(*forms_.rules[index], output) == Joined::all) is_flag_[index_of(node.outputs[output])] = true;
  }

  /// Of weights that may be split how they are.
  void decide_weights(size_t index) {
    const Node& node = graph_.nodes()[index];
    const auto& rule = forms_.rules[index];
    if (!rule || rule->keeps_order) return;
    for (size_t at = 0; at < node.inputs.size(); ++at) {
      const auto input = inputs_.find(node.inputs[at].index);
      if (input == inputs_.end() || decided_.contains(input->second->name)) continue;
      const auto open = options_.open.find(input->second->name);
      if (open == options_.open.end()) continue;
      const LayerOperands layer{graph_, node, *rule, forms_.of_value, ranks_};
      if (const auto split = suggested_split(layer, at, open->second)) set_state(input->second->name, *split);
    }
  }

  /// What a layer has beside its weight, such as its bias, is split as the layer is.
  void lead_followers(size_t index, const NodeRole& role) {
    const Node& node = graph_.nodes()[index];
    for (size_t at = 0; at < node.inputs.size(); ++at) {
      const ValueId value = node.inputs[at];
      const auto input = inputs_.find(value.index);
      const auto dimension = dimension_of(forms_.rules[index]->inputs[at], role.label);
      if (input == inputs_.end() || !dimension || !is(value, FormKind::whole)) continue;
      if (is_split_by_others(graph_, value, *dimension)) continue;
      if (!options_.followers.contains(input->second->name)) continue;
      if (index_of(users_[index_of(value)].front()) == index) set_state(input->second->name, {*dimension, role.blocks});
    }
    // Its value under another shape, made for this node alone.
    for (size_t at = 0; at < node.inputs.size(); ++at) {
      const ValueId value = node.inputs[at];
      const NodeId producer = graph_.value(value).producer;
      const auto dimension = dimension_of(forms_.rules[index]->inputs[at], role.label);
      if (!producer.valid() || !dimension || !is(value, FormKind::whole)) continue;
      const auto& rule = forms_.rules[index_of(producer)];
      const ValueId source = rule && rule->keeps_order ? graph_.node(producer).inputs[0] : ValueId{};
      if (!source.valid() || !inputs_.contains(source.index) ||
          users_[index_of(value)].front().index != static_cast<int32_t>(index))
        continue;
      const std::string& name = inputs_.at(source.index)->name;
      if (!options_.followers.contains(name) || users_[index_of(source)].front() != producer) continue;
      const auto split = reshaped({*dimension, role.blocks}, graph_.shape(value), graph_.shape(source), ranks_);
      if (!split || is_split_by_others(graph_, source, split->dimension)) continue;
      set_state(name, *split);
      forms_.of_node[index_of(producer)] = {.kind = RoleKind::order, .from = *split, .to = {*dimension, role.blocks}};
      form(value) = {FormKind::split, {*dimension, role.blocks}};
    }
  }

  double to_whole(ValueId value) {
    const bool is_state = inputs_.contains(value.index);
    switch (form(value).kind) {
      case FormKind::whole:
        return 0;
      case FormKind::split:
        return is_whole_too_[index_of(value)] ? 0 : (is_state ? kOfState : 1) * share() * bytes(value);
      default:  // the parts of a sum that was scattered are gathered
        return is_whole_too_[index_of(value)] ? 0
                                              : (forms_.scattered[index_of(value)] ? 1 : 2) * share() * bytes(value);
    }
  }

  double to_split(ValueId value, const DimensionSplit& split) {
    if (is(value, FormKind::split) && form(value).split == split) return 0;
    const auto& scattered = forms_.scattered[index_of(value)];
    if (scattered == split) return 0;
    if (!scattered && may_scatter(value, split)) return share() * bytes(value);
    // What is there as a whole, as a sum is once it is put together, will be wanted so again.
    const bool is_there = is(value, FormKind::sum) || (is(value, FormKind::whole) && !inputs_.contains(value.index));
    return to_whole(value) + (is_there ? share() * bytes(value) : 0);
  }

  /// Of work on the whole tensors.
  double work(size_t index) const {
    const NodeSignature node = signature_of(graph_, node_at(index));
    double cost = 0;
    for (const auto* types : {&node.inputs, &node.outputs})
      for (const TensorType& type : *types) cost += static_cast<double>(type.bytes()) / kMemoryPerByte;
    if (node.op->flops)
      cost += static_cast<double>(node.op->flops(node.inputs, node.outputs, node.attributes)) / kFlopsPerByte;
    return cost;
  }

  Way cheapest(size_t index) {
    const Node& node = graph_.nodes()[index];
    if (const std::optional<NodeRole> role = joined(node)) return {*role, 0};
    const double work_in_all = work(index);
    Way best{{}, work_in_all};
    for (const ValueId input : node.inputs) best.cost += to_whole(input);
    const auto& rule = forms_.rules[index];
    // Nothing behind a sum runs before it is complete. An exchange there would come too late for a whole state, so such
    // a sum adds whole gradients.
    if (!rule || (is_accumulation(node) && is(node.inputs[0], FormKind::whole))) return best;
    const auto consider = [&](const Way& way) {
      if (way.cost < best.cost) best = way;
    };
    if (rule->is_linear && reads_terms_only(node)) return {{.kind = RoleKind::linear}, 0};
    if (rule->keeps_order) {
      if (const auto role = kept_order(node, wanted_[index]))
        consider({*role, to_split(node.inputs[0], role->from) + work_in_all / static_cast<double>(ranks_)});
      return best;
    }
    for (const auto& [label, blocks] : labels_at_hand(index))
      consider({{.kind = RoleKind::label, .label = label, .blocks = blocks},
                cost_along(index, label, blocks) + work_in_all / static_cast<double>(ranks_)});
    return best;
  }

  /// Single numbers that are terms, and flags.
  std::optional<NodeRole> joined(const Node& node) {
    const auto any_is = [&](FormKind kind) {
      return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId value) { return is(value, kind); });
    };
    const auto is_used_here_only = [&](ValueId value) {
      return is(value, FormKind::whole) || (users_[index_of(value)].size() == 1 && !is_result_[index_of(value)]);
    };
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_used_here_only)) return std::nullopt;
    if (node.outputs.size() != 1 || !is_number(node.outputs[0])) return std::nullopt;
    if (node.op->name == "add" && any_is(FormKind::sum) && !any_is(FormKind::split) && !any_is(FormKind::all))
      return NodeRole{.kind = RoleKind::terms};
    const auto is_flag = [&](ValueId value) { return is_flag_[index_of(value)]; };
    if (node.op->name == "multiply" && any_is(FormKind::all) &&
        std::all_of(node.inputs.begin(), node.inputs.end(), is_flag))
      return NodeRole{.kind = RoleKind::flags};
    return std::nullopt;
  }

  /// Whether its tensors are terms that nobody else wants: then they go over the ranks behind it.
  bool reads_terms_only(const Node& node) {
    bool has_terms = false;
    for (const ValueId input : node.inputs) {
      if (!is(input, FormKind::sum) || users_[index_of(input)].size() > 1 || is_result_[index_of(input)]) return false;
      has_terms = true;
    }
    return has_terms;
  }

  std::optional<NodeRole> kept_order(const Node& node, const std::optional<DimensionSplit>& wanted) {
    const Shape &from = graph_.shape(node.inputs[0]), &to = graph_.shape(node.outputs[0]);
    NodeRole role{.kind = RoleKind::order};
    if (is(node.inputs[0], FormKind::split)) {
      role.from = form(node.inputs[0]).split;
      const auto split = reshaped(role.from, from, to, ranks_);
      if (!split) return std::nullopt;
      role.to = *split;
      return role;
    }
    if (!wanted || !is(node.inputs[0], FormKind::whole)) return std::nullopt;
    const auto split = reshaped(*wanted, to, from, ranks_);
    if (!split) return std::nullopt;
    role.from = *split;
    role.to = *wanted;
    return role;
  }

  /// Those along which an operand is split already, or a result is wanted, with the blocks.
  std::set<std::pair<int, int64_t>> labels_at_hand(size_t index) {
    const Node& node = graph_.nodes()[index];
    const DimensionRule& rule = *forms_.rules[index];
    std::set<std::pair<int, int64_t>> labels;
    for (size_t at = 0; at < node.inputs.size(); ++at) {
      if (!is(node.inputs[at], FormKind::split)) continue;
      const DimensionSplit& split = form(node.inputs[at]).split;
      labels.emplace(rule.inputs[at][static_cast<size_t>(split.dimension)], split.blocks);
    }
    if (options_.splits_sums && is_forward(index)) add_labels_of_sums(index, labels);
    if (wanted_[index]) {
      const int label = rule.outputs[0][static_cast<size_t>(wanted_[index]->dimension)];
      labels.emplace(label, wanted_[index]->blocks);
    }
    std::erase_if(labels, [&](const auto& one) { return !can_split(index, one.first, one.second); });
    return labels;
  }

  /// Of each sum, those of the first dimension in which the node can be computed in parts.
  void add_labels_of_sums(size_t index, std::set<std::pair<int, int64_t>>& labels) const {
    const Node& node = graph_.nodes()[index];
    for (size_t at = 0; at < node.inputs.size(); ++at) {
      const std::vector<int>& own = forms_.rules[index]->inputs[at];
      for (int dimension = 0; dimension < graph_.shape(node.inputs[at]).rank(); ++dimension) {
        const int label = own[static_cast<size_t>(dimension)];
        if (!may_scatter(node.inputs[at], {dimension, 1}) || !can_split(index, label, 1)) continue;
        labels.emplace(label, 1);
        break;
      }
    }
  }

  bool can_split(size_t index, int label, int64_t blocks) const {
    return passes::can_split(graph_, graph_.nodes()[index], *forms_.rules[index], label, blocks, ranks_);
  }

  double cost_along(size_t index, int label, int64_t blocks) {
    const Node& node = graph_.nodes()[index];
    const DimensionRule& rule = *forms_.rules[index];
    double cost = 0;
    for (size_t at = 0; at < node.inputs.size(); ++at) {
      const auto dimension = dimension_of(rule.inputs[at], label);
      cost += dimension ? to_split(node.inputs[at], {*dimension, blocks}) : to_whole(node.inputs[at]);
    }
    const bool is_composed = is_among(rule.composed, label);
    for (size_t at = 0; at < node.outputs.size() && !is_composed; ++at)
      if (!dimension_of(rule.outputs[at], label))
        cost += 2 * share() * bytes(node.outputs[at]);
      else if (is_whole_state(node.outputs[at]))
        cost += share() * bytes(node.outputs[at]);
    return cost;
  }

  void apply(size_t index, const NodeRole& role) {
    const Node& node = graph_.nodes()[index];
    const bool is_of_rows = works_on_rows(index);
    for (size_t at = 0; at < node.outputs.size(); ++at) {
      ValueForm& result = form(node.outputs[at]);
      switch (role.kind) {
        case RoleKind::whole:
          break;
        case RoleKind::order:
          result = {FormKind::split, role.to, is_of_rows};
          break;
        case RoleKind::linear:
        case RoleKind::terms:
          result.kind = FormKind::sum;
          break;
        case RoleKind::flags:
          result.kind = FormKind::all;
          break;
        case RoleKind::label: {
          const DimensionRule& rule = *forms_.rules[index];
          const bool is_composed = is_among(rule.composed, role.label);
          if (const auto dimension = dimension_of(rule.outputs[at], role.label))
            result = {FormKind::split, {*dimension, role.blocks}, is_of_rows};
          else if (!is_composed)
            result.kind = joined_of(rule, at) == Joined::all ? FormKind::all : FormKind::sum;
        }
      }
    }
  }

  /// Whether the value is what comes of a state of which each rank has all.
  bool is_whole_state(ValueId value) const {
    const auto state = successors_.find(value.index);
    return state != successors_.end() && !decided_.contains(state->second);
  }

  /// Whether the node, in its role, wants all of the operand.
  bool wants_whole(size_t index, size_t at) {
    const NodeRole& role = forms_.of_node[index];
    return role.kind == RoleKind::whole || (role.kind == RoleKind::label && !wanted_split(index, at));
  }

  /// How the node, in its role, wants the operand to be split.
  std::optional<DimensionSplit> wanted_split(size_t index, size_t at) const {
    const NodeRole& role = forms_.of_node[index];
    if (role.kind == RoleKind::order) return role.from;
    if (role.kind != RoleKind::label) return std::nullopt;
    const auto dimension = dimension_of(forms_.rules[index]->inputs[at], role.label);
    return dimension ? std::optional(DimensionSplit{*dimension, role.blocks}) : std::nullopt;
  }

  /// Sums of which each rank gets its part alone, since the node is the first to want more than the terms.
  void note_scattered(size_t index) {
    const Node& node = graph_.nodes()[index];
    for (size_t at = 0; at < node.inputs.size(); ++at) {
      auto& scattered = forms_.scattered[index_of(node.inputs[at])];
      const auto wanted = wanted_split(index, at);
      if (!scattered && wanted && may_scatter(node.inputs[at], *wanted)) scattered = wanted;
    }
  }

  /// Whether the node, in its role, follows a sum of which each rank has some rows.
  bool works_on_rows(size_t index) const {
    const Node& node = graph_.nodes()[index];
    for (size_t at = 0; at < node.inputs.size(); ++at) {
      const auto wanted = wanted_split(index, at);
      if (!wanted) continue;
      const ValueForm& have = form(node.inputs[at]);
      if (have.kind == FormKind::split ? have.is_of_rows && have.split == *wanted
                                       : forms_.scattered[index_of(node.inputs[at])] == wanted)
        return true;
    }
    return false;
  }

  bool may_scatter(ValueId value, const DimensionSplit& split) const {
    return options_.splits_sums && form(value).kind == FormKind::sum && !is_whole_too_[index_of(value)] &&
           split.dimension + 1 < graph_.shape(value).rank() && graph_.shape(value).rank() <= kMostOfTokens;
  }

  /// The split in which all users of the value want it, where there is one.
  std::optional<DimensionSplit> wanted_by_users(ValueId value) {
    if (is_number(value)) return std::nullopt;
    for (const GraphOutput& output : graph_.outputs())
      if (output.value == value) return std::nullopt;
    std::optional<DimensionSplit> wanted;
    const auto agree = [&](const std::optional<DimensionSplit>& one) {
      if (!one || (wanted && *wanted != *one)) return false;
      wanted = one;
      return true;
    };
    if (const auto state = successors_.find(value.index); state != successors_.end()) {
      const auto split = decided_.find(state->second);
      if (!agree(split == decided_.end() ? std::nullopt : std::optional(split->second))) return std::nullopt;
    }
    for (const NodeId user : users_[index_of(value)]) {
      const Node& node = graph_.node(user);
      for (size_t at = 0; at < node.inputs.size(); ++at)
        if (node.inputs[at] == value && !agree(wanted_split(index_of(user), at))) return std::nullopt;
    }
    return wanted;
  }

  /// Finds nodes that compute the whole of what is wanted in parts; whether there are more than before.
  bool look_back() {
    bool has_found = false;
    for (size_t index = graph_.nodes().size(); index-- > 0;) {
      const Node& node = graph_.nodes()[index];
      const auto& rule = forms_.rules[index];
      if (forms_.of_node[index].kind != RoleKind::whole || !rule || wanted_[index] || node.op->is_update) continue;
      const auto wanted = wanted_by_users(node.outputs[0]);
      if (!wanted) continue;
      if (rule->keeps_order) {
        const auto role = kept_order(node, wanted);
        if (!role) continue;
        wanted_[index] = wanted;
        forms_.of_node[index] = *role;
      } else {
        const int label = rule->outputs[0][static_cast<size_t>(wanted->dimension)];
        if (!can_split(index, label, wanted->blocks) || !is_free(index, label, *wanted)) continue;
        wanted_[index] = wanted;
        forms_.of_node[index] = {.kind = RoleKind::label, .label = label, .blocks = wanted->blocks};
      }
      has_found = true;
    }
    return has_found;
  }

  /// Whether parts along the label cost no exchange, and all results are wanted so.
  bool is_free(size_t index, int label, const DimensionSplit& wanted) {
    const Node& node = graph_.nodes()[index];
    const DimensionRule& rule = *forms_.rules[index];
    for (const ValueId input : node.inputs)
      if (!is(input, FormKind::whole)) return false;
    for (size_t at = 1; at < node.outputs.size(); ++at) {
      if (users_[index_of(node.outputs[at])].empty() && !is_result_[index_of(node.outputs[at])]) continue;
      const auto dimension = dimension_of(rule.outputs[at], label);
      if (!dimension || wanted_by_users(node.outputs[at]) != DimensionSplit{*dimension, wanted.blocks}) return false;
    }
    return true;
  }

  const Graph& graph_;
  const DimensionOptions& options_;
  const int64_t ranks_;
  const std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_result_;
  std::vector<std::optional<DimensionSplit>> wanted_;  // per node, of its first result: found by look_back()
  std::map<std::string, DimensionSplit> decided_;      // by state
  std::map<int32_t, const GraphInput*> inputs_;        // by value
  std::map<int32_t, std::string> successors_;          // by value: the state as which it is split
  std::vector<bool> is_whole_too_;                     // per value: some node wants all of it
  std::vector<bool> is_flag_;                          // per value: a number that is 1 or 0
  DimensionForms forms_;
};

}  // namespace

DimensionForms find_dimension_forms(const Graph& graph, const DimensionOptions& options) {
  return DimensionFinder(graph, options).find();
}

}  // namespace weft::passes
