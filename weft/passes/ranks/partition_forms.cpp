#include "weft/passes/ranks/partition_forms.h"

#include <algorithm>
#include <set>

#include "weft/graph/collective.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

OfSplit meaning_of(const OpDef& op, size_t output) { return op.of_split[std::min(output, op.of_split.size() - 1)]; }

/// Whether the op gives nothing but numbers over all elements.
bool is_reduction(const OpDef& op) {
  return !op.of_split.empty() &&
         std::none_of(op.of_split.begin(), op.of_split.end(), [](OfSplit one) { return one == OfSplit::elements; });
}

/// Ops that give 0 where all operands of the full shape are 0. Where it is `also_beside_numbers`, whatever the single
/// numbers are.
bool keeps_zeros(const OpDef& op, bool also_beside_numbers) {
  static const std::set<std::string> always = {"negate",
                                               "absolute",
                                               "square",
                                               "sqrt",
                                               "sign",
                                               "tanh",
                                               "multiply",
                                               "multiply_scalar",
                                               "divide",
                                               "sgd_update",
                                               "adamw_update",
                                               "blend_update",
                                               "accumulate_update",
                                               "unscale_gradient"};
  static const std::set<std::string> of_tensors = {"add", "subtract", "minimum", "maximum", "clip"};
  return always.contains(op.name) || (!also_beside_numbers && of_tensors.contains(op.name));
}

class Finder {
 public:
  Finder(const Graph& graph, const PartitionOptions& options)
      : graph_(graph),
        options_(options),
        users_(find_users(graph)),
        wanted_(graph.nodes().size(), false),
        ends_with_zeros_(graph.values().size(), true) {
    find_local_values();
    is_kept_whole_.assign(graph.values().size(), false);
    for (const GraphOutput& output : graph.outputs()) is_kept_whole_[index_of(output.value)] = true;
    for (const StateUpdate& update : graph.updates())
      if (!options.states.contains(update.state)) is_kept_whole_[index_of(update.value)] = true;
  }

  Forms find() {
    do {
      while (!spread()) {
      }
    } while (look_back());
    return std::move(forms_);
  }

 private:
  Form& form(ValueId value) { return forms_.of_value[index_of(value)]; }
  bool is_flat(ValueId value) { return form(value) == Form::flat; }
  bool is_number(ValueId value) const { return graph_.type(value).elements() == 1; }
  bool is_padded(const Shape& shape) const {
    const int64_t elements = shape.elements(), ranks = options_.axis.size;
    return flat_part_elements(elements, ranks) * ranks != elements;
  }

  /// What differs between the ranks before they exchange it: of such there are no parts of one tensor.
  void find_local_values() {
    is_local_.assign(graph_.values().size(), false);
    for (const GraphInput& input : graph_.inputs())
      is_local_[index_of(input.value)] = input.kind == InputKind::batch || options_.of_each_rank.contains(input.name);
    for (const Node& node : graph_.nodes()) {
      // After most exchanges all have the same; after one of tokens each has others.
      const bool is_common = find_collective(node) != nullptr && node.op->name != kAllToAll;
      if (is_common && axis_of_exchange(node) == options_.axis.name) continue;
      // What stages send each other belongs to a part of the batch, but for norms and the like.
      const bool is_received = is_message(node) && node.inputs.empty() && !is_number(node.outputs[0]);
      const bool is_local = is_received || reads_local(node);
      for (const ValueId output : node.outputs) is_local_[index_of(output)] = is_local;
    }
  }
  bool reads_local(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId input) { return static_cast<bool>(is_local_[index_of(input)]); });
  }

  /// From the states on, and from what look_back() has found, in the graph's order. False where the ends of states turn
  /// out not to stay zero: then once more.
  bool spread() {
    forms_.of_value.assign(graph_.values().size(), Form::whole);
    forms_.of_node.assign(graph_.nodes().size(), Role::whole);
    is_flag_.assign(graph_.values().size(), false);
    for (const GraphInput& input : graph_.inputs())
      if (options_.states.contains(input.name)) form(input.value) = Form::flat;
    for (size_t index = 0; index < graph_.nodes().size(); ++index) visit(index);
    bool is_stable = true;
    for (const StateUpdate& update : graph_.updates()) {
      const size_t state = index_of(graph_.find_input(update.state)->value);
      if (!ends_with_zeros_[state] || ends_with_zeros_[index_of(update.value)]) continue;
      ends_with_zeros_[state] = false;
      is_stable = false;
    }
    return is_stable;
  }

  void visit(size_t index) {
    const Node& node = graph_.nodes()[index];
    Role& role = forms_.of_node[index];
    if (is_all_reduce(node) && wanted_[index]) {
      role = Role::scatter;
      form(node.outputs[0]) = Form::flat;
      return;
    }
    if (goes_in_parts(index)) {
      role = Role::parts;
      for (size_t output = 0; output < node.outputs.size(); ++output) {
        const OfSplit meaning = meaning_of(*node.op, output);
        form(node.outputs[output]) = meaning == OfSplit::elements ? Form::flat
                                     : meaning == OfSplit::sum    ? Form::sum
                                                                  : Form::all;
        ends_with_zeros_[index_of(node.outputs[output])] = stays_zero(node);
      }
      return;
    }
    for (size_t output = 0; output < node.outputs.size(); ++output)
      if (!node.op->of_split.empty() && meaning_of(*node.op, output) == OfSplit::all)
        is_flag_[index_of(node.outputs[output])] = true;
    join(node, role);
  }

  /// Sums of terms, and products of flags, go over the ranks as one.
  void join(const Node& node, Role& role) {
    const auto all_are = [&](auto&& fits) { return std::all_of(node.inputs.begin(), node.inputs.end(), fits); };
    const auto any_is = [&](Form wanted) {
      return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) { return form(input) == wanted; });
    };
    const ValueId output = node.outputs[0];
    if (node.op->name == "add" && any_is(Form::sum) && is_number(output) &&
        all_are([&](ValueId input) { return form(input) == Form::sum || form(input) == Form::whole; })) {
      role = Role::joins;
      form(output) = Form::sum;
    } else if (node.op->name == "multiply" &&
               all_are([&](ValueId input) { return form(input) == Form::all || is_flag_[index_of(input)]; })) {
      is_flag_[index_of(output)] = true;
      if (!any_is(Form::all)) return;
      role = Role::joins;
      form(output) = Form::all;
    }
  }

  /// The shape that the node's tensors have, where all have one and the rest are single numbers.
  const Shape* common_shape(const Node& node) const {
    const Shape* shape = nullptr;
    for (const ValueId input : node.inputs) {
      if (is_number(input)) continue;
      if (shape != nullptr && graph_.shape(input) != *shape) return nullptr;
      shape = &graph_.shape(input);
    }
    if (shape == nullptr || node.op->of_split.empty()) return nullptr;
    for (size_t output = 0; output < node.outputs.size(); ++output)
      if (meaning_of(*node.op, output) == OfSplit::elements && graph_.shape(node.outputs[output]) != *shape)
        return nullptr;
    return shape;
  }

  bool goes_in_parts(size_t index) {
    const Node& node = graph_.nodes()[index];
    const Shape* const shape = common_shape(node);
    if (shape == nullptr || reads_local(node)) return false;
    const bool reads_parts =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) { return is_flat(input); });
    if (!reads_parts && !wanted_[index]) return false;
    if (!is_reduction(*node.op) || !is_padded(*shape)) return true;
    // Behind the last element nothing may count.
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId input) { return is_number(input) || ends_with_zeros_[index_of(input)]; });
  }

  /// Whether the last part's end is zero in the results as it is in the operands.
  bool stays_zero(const Node& node) const {
    bool has_numbers = false;
    for (size_t at = 0; at < node.inputs.size(); ++at) {
      const ValueId input = node.inputs[at];
      if (is_number(input))
        has_numbers = true;
      else if (!ends_with_zeros_[index_of(input)] && (node.op->name != "divide" || at == 0))
        return false;
    }
    return keeps_zeros(*node.op, has_numbers);
  }

  /// Finds nodes of whose results only parts are wanted; whether there are more than before.
  bool look_back() {
    bool has_found = false;
    for (size_t index = graph_.nodes().size(); index-- > 0;) {
      const Node& node = graph_.nodes()[index];
      if (forms_.of_node[index] != Role::whole || node.op->is_update) continue;
      const bool may_scatter = options_.scatters && is_all_reduce(node);
      if (!may_scatter && (is_reduction(*node.op) || common_shape(node) == nullptr || reads_local(node))) continue;
      if (!wants_parts_only(node)) continue;
      wanted_[index] = has_found = true;
      forms_.of_node[index] = may_scatter ? Role::scatter : Role::parts;
    }
    return has_found;
  }

  bool wants_parts_only(const Node& node) const {
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      const ValueId value = node.outputs[output];
      if (!is_all_reduce(node) && meaning_of(*node.op, output) != OfSplit::elements) continue;
      if (is_number(value) || is_kept_whole_[index_of(value)]) return false;
      bool is_read_in_parts = false;
      for (const NodeId user : users_[index_of(value)]) {
        const bool in_parts = forms_.of_node[index_of(user)] == Role::parts;
        if (!in_parts && !(is_reduction(*graph_.node(user).op) && common_shape(graph_.node(user)) != nullptr))
          return false;
        is_read_in_parts = is_read_in_parts || in_parts;
      }
      if (!is_read_in_parts) return false;
    }
    return true;
  }

  const Graph& graph_;
  const PartitionOptions& options_;
  const std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_local_;         // per value
  std::vector<bool> is_kept_whole_;    // per value: an output, or the successor of a state that is not split
  std::vector<bool> wanted_;           // per node: found by look_back()
  std::vector<bool> ends_with_zeros_;  // per value: behind its last element, if it is split
  std::vector<bool> is_flag_;          // per value: a number that is 1 or 0
  Forms forms_;
};

}  // namespace

Forms find_forms(const Graph& graph, const PartitionOptions& options) { return Finder(graph, options).find(); }

}  // namespace weft::passes
