#include "weft/passes/ranks/partition_dimensions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/graph/collective.h"
#include "weft/graph/tensor_parts.h"
#include "weft/ops/ops.h"
#include "weft/passes/ranks/dimension_forms.h"
#include "weft/passes/ranks/dimension_rules.h"
#include "weft/passes/ranks/gather_parts.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

using FormKind = DimensionForm::Kind;
using RoleKind = DimensionRole::Kind;

class DimensionBuilder {
 public:
  DimensionBuilder(const Graph& graph, const DimensionOptions& options)
      : graph_(graph),
        axis_(options.axis),
        forms_(find_dimension_forms(graph, options)),
        result_(graph.registry(), graph.name()),
        mapped_(graph.values().size()),
        wholes_(graph.values().size()),
        shares_(graph.values().size()),
        parts_(graph.values().size()) {}

  DimensionPartition run(const DimensionOptions& options) {
    for (const GraphInput& input : graph_.inputs()) add_input(input);
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      add_node(index);
      note_origins(node_at(index));
    }
    for (const GraphOutput& output : graph_.outputs()) {
      result_.add_output(output.name, whole(output.value));
      note_origins(graph_.value(output.value).producer);
    }
    for (const StateUpdate& update : graph_.updates()) {
      const auto split = forms_.states.find(update.state);
      result_.add_update(update.state,
                         split == forms_.states.end() ? whole(update.value) : part(update.value, split->second));
      note_origins(graph_.value(update.value).producer);
    }
    std::vector<ValueId> results;
    for (const auto& [value, state] : options.results) {
      const auto split = forms_.states.find(state);
      results.push_back(split == forms_.states.end() ? whole(value) : part(value, split->second));
      note_origins(graph_.value(value).producer);
    }
    return {std::move(result_), std::move(forms_.states), std::move(results), std::move(origins_)};
  }

 private:
  const DimensionForm& form(ValueId value) const { return forms_.of_value[index_of(value)]; }
  const std::string& name(ValueId value) const { return graph_.value(value).name; }

  /// Of the nodes that have been added since the last call.
  void note_origins(NodeId of) { origins_.resize(result_.nodes().size(), {of, false}); }

  void add_input(const GraphInput& input) {
    TensorType type = graph_.type(input.value);
    const auto& known = graph_.sharding(input.value);
    const auto split = forms_.states.find(input.name);
    if (split == forms_.states.end()) {
      const ValueId added = mapped_[index_of(input.value)] = result_.add_input(input.kind, input.name, type);
      result_.copy_sharding(added, graph_, input.value);
      return;
    }
    const Sharding sharding =
        known ? split_further(*known, split->second, axis_) : sharding_of(type.shape, split->second, axis_);
    type.shape = part_shape(sharding);
    const ValueId added = mapped_[index_of(input.value)] = result_.add_input(input.kind, input.name, type);
    result_.set_sharding(added, sharding);
  }

  void add_node(size_t index) {
    const Node& node = graph_.nodes()[index];
    const DimensionRole& role = forms_.of_node[index];
    const std::string& node_name = graph_.node_name(node_at(index));
    std::vector<ValueId> operands;
    for (size_t at = 0; at < node.inputs.size(); ++at) operands.push_back(operand(index, at));
    Attributes attributes = node.attributes;
    std::vector<ValueId> outputs;
    if (role.kind == RoleKind::label && is_among(forms_.rules[index]->composed, role.label)) {
      outputs = compose(node, operands, node_name);
    } else {
      if (role.kind == RoleKind::label || role.kind == RoleKind::order) take_part(index, attributes);
      if (role.kind == RoleKind::label && is_among(forms_.rules[index]->placed, role.label)) {
        const auto& names = node.op->inputs;
        operands.insert(operands.begin() + (std::find(names.begin(), names.end(), "place?") - names.begin()), place());
      }
      note_origins(node_at(index));
      outputs = result_.add_node(node.op->name, operands, attributes, node_name);
      origins_.push_back({node_at(index), true});
    }
    for (size_t at = 0; at < outputs.size(); ++at) {
      const bool is_mean = role.kind == RoleKind::label && form(node.outputs[at]).kind == FormKind::sum &&
                           at < forms_.rules[index]->joined.size() && forms_.rules[index]->joined[at] == Joined::mean;
      mapped_[index_of(node.outputs[at])] = is_mean ? share_of(outputs[at], name(node.outputs[at])) : outputs[at];
      note_form(node.outputs[at]);
    }
  }

  /// Parts and terms of sums say so in the new graph.
  void note_form(ValueId value) {
    const ValueId own = mapped_[index_of(value)];
    if (form(value).kind == FormKind::split)
      result_.set_sharding(own, sharding_of(graph_.shape(value), form(value).split, axis_));
    else if (form(value).kind == FormKind::sum)
      result_.set_sharding(own, {.whole = graph_.shape(value), .partial = axis_});
  }

  ValueId operand(size_t index, size_t at) {
    const ValueId value = graph_.nodes()[index].inputs[at];
    const DimensionRole& role = forms_.of_node[index];
    switch (role.kind) {
      case RoleKind::order:
        return part(value, role.from);
      case RoleKind::linear:
        return mapped_[index_of(value)];
      case RoleKind::terms:
        return form(value).kind == FormKind::sum ? mapped_[index_of(value)] : share(value);
      case RoleKind::flags:
        return form(value).kind == FormKind::all ? mapped_[index_of(value)] : whole(value);
      case RoleKind::label:
        if (const auto dimension = dimension_of(forms_.rules[index]->inputs[at], role.label))
          return part(value, {*dimension, role.blocks});
        return whole(value);
      default:
        return whole(value);
    }
  }

  void take_part(size_t index, Attributes& attributes) {
    const Node& node = graph_.nodes()[index];
    if (!node.op->of_part) return;
    const DimensionRole& role = forms_.of_node[index];
    std::vector<TensorType> inputs, outputs;
    for (const ValueId input : node.inputs) inputs.push_back(graph_.type(input));
    for (const ValueId output : node.outputs) outputs.push_back(graph_.type(output));
    const auto parts_of = [&](const std::vector<TensorType>& types, bool are_results) {
      std::vector<Shape> shapes;
      for (size_t at = 0; at < types.size(); ++at) {
        shapes.push_back(types[at].shape);
        const std::optional<int> dimension = role.kind == RoleKind::order
                                                 ? std::optional(are_results ? role.to.dimension : role.from.dimension)
                                             : are_results ? dimension_of(forms_.rules[index]->outputs[at], role.label)
                                                           : dimension_of(forms_.rules[index]->inputs[at], role.label);
        if (dimension) shapes.back()[*dimension] /= axis_.size;
      }
      return shapes;
    };
    const DimensionContext whole{inputs, outputs, node.attributes};
    const std::vector<Shape> part_inputs = parts_of(inputs, false), part_outputs = parts_of(outputs, true);
    node.op->of_part(attributes, {whole, part_inputs, part_outputs, axis_.size, role.blocks});
  }

  std::vector<ValueId> compose(const Node& node, const std::vector<ValueId>& operands, const std::string& as) {
    std::vector<TensorType> inputs, outputs;
    for (const ValueId input : node.inputs) inputs.push_back(graph_.type(input));
    for (const ValueId output : node.outputs) outputs.push_back(graph_.type(output));
    const DimensionContext whole{inputs, outputs, node.attributes};
    ComposedContext context{result_, whole, operands, place(), axis_.name, axis_.size, as};
    return node.op->in_parts(context);
  }

  ValueId place() {
    if (!place_.valid())
      place_ = result_.add(kAxisPlace, {}, {{kAxis, axis_.name}, {"ranks", axis_.size}}, axis_.name + ".place");
    return place_;
  }

  /// A part of what every rank has, as a share of a sum over them.
  ValueId share_of(ValueId value, const std::string& as) {
    return ops::multiply_scalar(result_, value, 1 / static_cast<double>(axis_.size), as + ".term");
  }
  ValueId share(ValueId value) {
    ValueId& known = shares_[index_of(value)];
    if (known.valid()) return known;
    known = share_of(whole(value), name(value));
    result_.set_sharding(known, {.whole = graph_.shape(value), .partial = axis_});
    return known;
  }

  ValueId part(ValueId value, const DimensionSplit& split) {
    if (form(value).kind == FormKind::split && form(value).split == split) return mapped_[index_of(value)];
    for (const auto& [known, as] : parts_[index_of(value)])
      if (known == split) return as;
    const ValueId own = forms_.scattered[index_of(value)] == split ? scattered(value, split) : own_part(value, split);
    result_.set_sharding(own, sharding_of(graph_.shape(value), split, axis_));
    parts_[index_of(value)].emplace_back(split, own);
    return own;
  }
  /// Of a sum, which no rank has as a whole yet.
  ValueId scattered(ValueId value, const DimensionSplit& split) {
    return scatter_dimension(result_, mapped_[index_of(value)], split.dimension, split.blocks, axis_, name(value));
  }
  ValueId own_part(ValueId value, const DimensionSplit& split) {
    return result_.add(
        kOwnPart, {whole(value)},
        {{"ranks", axis_.size}, {kAxis, axis_.name}, {"dimension", int64_t{split.dimension}}, {"blocks", split.blocks}},
        name(value) + ".part");
  }

  ValueId whole(ValueId value) {
    if (form(value).kind == FormKind::whole) return mapped_[index_of(value)];
    ValueId& known = wholes_[index_of(value)];
    if (!known.valid()) known = made_whole(value);
    return known;
  }

  ValueId made_whole(ValueId value) {
    const auto& scattering = forms_.scattered[index_of(value)];
    const ValueId own = scattering ? part(value, *scattering) : mapped_[index_of(value)];
    if (scattering || form(value).kind == FormKind::split) {
      const DimensionSplit& split = scattering ? *scattering : form(value).split;
      return gather_dimension(result_, own, split.dimension, split.blocks, axis_, graph_.shape(value), name(value));
    }
    const ValueId sum = ops::all_reduce(result_, own, "sum", "all_reduce/" + name(value), axis_.name);
    if (form(value).kind == FormKind::sum) return sum;
    const ValueId nearly = ops::constant(result_, {}, static_cast<double>(axis_.size) - 0.5);
    return ops::greater(result_, sum, nearly, name(value) + ".on_all");
  }

  const Graph& graph_;
  const MeshAxis axis_;
  DimensionForms forms_;
  Graph result_;
  std::vector<ValueId> mapped_;                                         // per value, in its form
  std::vector<ValueId> wholes_, shares_;                                // per value, where it was asked for so
  std::vector<std::vector<std::pair<DimensionSplit, ValueId>>> parts_;  // likewise
  std::vector<NodeOrigin> origins_;                                     // per node of the result
  ValueId place_;
};

}  // namespace

DimensionPartition partition_dimensions(const Graph& graph, const DimensionOptions& options) {
  return DimensionBuilder(graph, options).run(options);
}

Sharding sharding_of(const Shape& whole, const DimensionSplit& split, const MeshAxis& axis) {
  return split_further({.whole = whole}, split, axis);
}

Sharding split_further(Sharding sharding, const DimensionSplit& split, const MeshAxis& axis) {
  check(split.dimension >= 0 && split.dimension < sharding.whole.rank(), "a dimension of the tensor");
  sharding.split.resize(static_cast<size_t>(sharding.whole.rank()));
  auto& along = sharding.split[static_cast<size_t>(split.dimension)];
  check(!along && sharding.blocks == 1, "a dimension that no other axis splits");
  along = axis;
  sharding.blocks = split.blocks;
  check(blocks_of(sharding, split.dimension) == split.blocks, "blocks of the last dimension that is split");
  return sharding;
}

}  // namespace weft::passes
