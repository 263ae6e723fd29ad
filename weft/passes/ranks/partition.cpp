#include "weft/passes/ranks/partition.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/graph/collective.h"
#include "weft/ops/ops.h"
#include "weft/ops/ranks/collective.h"
#include "weft/passes/ranks/gather_parts.h"
#include "weft/passes/ranks/partition_forms.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

class Partition {
 public:
  Partition(const Graph& graph, const PartitionOptions& options)
      : graph_(graph),
        options_(options),
        ranks_(options.axis.size),
        forms_(find_forms(graph, options)),
        result_(graph.registry(), graph.name()),
        mapped_(graph.values().size()),
        parts_(graph.values().size()),
        wholes_(graph.values().size()) {
    for (const StateUpdate& update : graph.updates())
      if (!options.states.contains(update.state)) successor_of_.emplace(update.value.index, update.state);
  }

  Graph run() {
    for (const GraphInput& input : graph_.inputs()) add_input(input);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      is_behind_ = options_.last_of_forward && static_cast<int32_t>(index) > options_.last_of_forward->index;
      add_node(index);
    }
    for (const GraphOutput& output : graph_.outputs()) result_.add_output(output.name, whole(output.value));
    for (const StateUpdate& update : graph_.updates())
      result_.add_update(update.state,
                         options_.states.contains(update.state) ? part(update.value) : whole(update.value));
    return std::move(result_);
  }

 private:
  Form form(ValueId value) const { return forms_.of_value[index_of(value)]; }
  const std::string& name(ValueId value) const { return graph_.value(value).name; }
  ValueId& mapped(ValueId value) { return mapped_[index_of(value)]; }

  void add_input(const GraphInput& input) {
    TensorType type = graph_.type(input.value);
    const auto split = options_.states.find(input.name);
    if (split != options_.states.end()) {
      check(split->second.flat == options_.axis && split->second.whole == type.shape, "the sharding of a state");
      type.shape = part_shape(split->second);
    }
    mapped(input.value) = result_.add_input(input.kind, input.name, type);
    note_sharding(input.value, mapped(input.value), split != options_.states.end() ? Form::flat : Form::whole);
  }

  /// Parts and terms of sums say so in the new graph, beside what other axes share.
  void note_sharding(ValueId value, ValueId own, Form form) {
    const auto& known = graph_.sharding(value);
    if (!known && (form == Form::whole || form == Form::all)) return;
    Sharding sharding = known.value_or(Sharding{.whole = graph_.shape(value)});
    if (form == Form::flat) sharding.flat = options_.axis;
    if (form == Form::sum && !sharding.partial) sharding.partial = options_.axis;
    result_.set_sharding(own, std::move(sharding));
  }

  void add_node(size_t index) {
    const Node& node = graph_.nodes()[index];
    const std::string& node_name = graph_.node_name(node_at(index));
    const Role role = forms_.of_node[index];
    if (role == Role::scatter) {
      const ValueId flat = flattened(whole(node.inputs[0]), graph_.shape(node.inputs[0]), name(node.inputs[0]));
      const std::string before = std::string(kAllReduce) + "/";
      const std::string as = !node_name.starts_with(before)
                                 ? node_name
                                 : fmt::format("{}/{}", kReduceScatter, node_name.substr(before.size()));
      mapped(node.outputs[0]) = ops::reduce_scatter(result_, flat, ranks_, node.attributes.text("reduction"), as);
      note_sharding(node.outputs[0], mapped(node.outputs[0]), form(node.outputs[0]));
      return;
    }
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) operands.push_back(operand(node, role, input));
    const std::vector<ValueId> outputs = result_.add_node(node.op->name, operands, node.attributes, node_name);
    for (size_t output = 0; output < outputs.size(); ++output) {
      mapped(node.outputs[output]) = outputs[output];
      note_sharding(node.outputs[output], outputs[output], form(node.outputs[output]));
    }
  }

  ValueId operand(const Node& node, Role role, ValueId value) {
    if (role == Role::joins && form(value) != Form::whole) return mapped(value);
    if (role == Role::joins && node.op->name == "add") return term(value);
    return role == Role::parts && graph_.type(value).elements() != 1 ? part(value) : whole(value);
  }

  /// [ranks r], zeros behind the last element.
  ValueId flattened(ValueId value, const Shape& shape, const std::string& as) {
    const int64_t elements = shape.elements(), all = flat_part_elements(elements, ranks_) * ranks_;
    ValueId flat = shape.rank() == 1 ? value : ops::reshape(result_, value, {elements}, as + ".flat");
    return all == elements ? flat : ops::pad(result_, flat, {0}, {all - elements}, 0, as + ".padded");
  }

  /// The rank's part of a value.
  ValueId part(ValueId value) {
    if (form(value) == Form::flat) return mapped(value);
    ValueId& known = parts_[index_of(value)];
    if (known.valid()) return known;
    known = ops::own_part(result_, flattened(whole(value), graph_.shape(value), name(value)), ranks_,
                          name(value) + ".part");
    note_sharding(value, known, Form::flat);
    return known;
  }

  /// A number that every rank has as a term of a sum over them.
  ValueId term(ValueId value) {
    ValueId& known = parts_[index_of(value)];
    if (known.valid()) return known;
    known = ops::multiply_scalar(result_, whole(value), 1 / static_cast<double>(ranks_), name(value) + ".term");
    note_sharding(value, known, Form::sum);
    return known;
  }

  /// All of the value.
  ValueId whole(ValueId value) {
    if (form(value) == Form::whole) return mapped(value);
    ValueId& known = (is_behind_ && is_state(value)) ? wholes_behind_[value.index] : wholes_[index_of(value)];
    if (!known.valid()) known = made_whole(value);
    return known;
  }
  bool is_state(ValueId value) const { return !graph_.value(value).producer.valid(); }

  ValueId made_whole(ValueId value) {
    if (form(value) == Form::sum) return ops::all_reduce(result_, mapped(value), "sum", name(value) + ".of_ranks");
    if (form(value) == Form::all) {
      const ValueId count = ops::all_reduce(result_, mapped(value), "sum", name(value) + ".of_ranks");
      const ValueId nearly = ops::constant(result_, {}, static_cast<double>(ranks_) - 0.5);
      return ops::greater(result_, count, nearly, name(value) + ".on_all");
    }
    const auto state = successor_of_.find(value.index);
    const std::string& as = state != successor_of_.end() ? state->second : name(value);
    const ValueId gathered = restore_elements(result_, gather(value, as), graph_.shape(value), as);
    if (state == successor_of_.end()) return gathered;
    // It takes the place of the state, so that its memory is not wanted twice.
    const ValueId before = mapped(graph_.find_input(state->second)->value);
    const ValueId keep = ops::constant(result_, {}, 0), take = ops::constant(result_, {}, 1);
    return ops::blend_update(result_, before, gathered, keep, take, "assign/" + as);
  }

  ValueId gather(ValueId value, const std::string& as) {
    return result_.add(kAllGather, {mapped(value)}, {{"ranks", ranks_}, {"turn", int64_t{is_behind_ ? 1 : 0}}},
                       "all_gather/" + as);
  }

  const Graph& graph_;
  const PartitionOptions& options_;
  const int64_t ranks_;
  const Forms forms_;
  Graph result_;
  std::vector<ValueId> mapped_;                  // per value, in its form
  std::vector<ValueId> parts_, wholes_;          // per value, where it was asked for in another
  std::map<int32_t, ValueId> wholes_behind_;     // by value: of states, behind the forward part
  std::map<int32_t, std::string> successor_of_;  // by value: of states that are whole
  bool is_behind_ = false;                       // the forward part
};

}  // namespace

Graph partition(const Graph& graph, const PartitionOptions& options) { return Partition(graph, options).run(); }

}  // namespace weft::passes
