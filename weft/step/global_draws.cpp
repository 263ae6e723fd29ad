#include "weft/step/global_draws.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/graph/rewrite.h"
#include "weft/passes/ranks/dimension_rules.h"
#include "weft/passes/support/rebuild.h"
#include "weft/spec/course.h"
#include "weft/step/local_steps.h"
#include "weft/step/micro_batches.h"

namespace weft::step {

namespace {

using passes::DimensionSplit;
using passes::index_of;

constexpr int kHalves = 2;

bool is_draw(const Node& node) { return node.op->name == "dropout"; }

/// The dimension that is twice as long; nullopt where there is not just one.
std::optional<int> doubled_dimension(const Shape& own, const Shape& twice) {
  if (own.rank() != twice.rank()) return std::nullopt;
  std::optional<int> doubled;
  for (int dimension = 0; dimension < own.rank(); ++dimension) {
    if (own[dimension] == twice[dimension]) continue;
    if (doubled || twice[dimension] != kHalves * own[dimension]) return std::nullopt;
    doubled = dimension;
  }
  return doubled;
}

/// How the first output of a node is split where an operand is split so; nullopt where no rule says it.
std::optional<DimensionSplit> split_behind(const Graph& graph, const Node& node,
                                           const std::vector<std::optional<DimensionSplit>>& splits, size_t output) {
  const auto rule = passes::rule_of(graph, node);
  const auto part = std::find_if(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId input) { return splits[index_of(input)].has_value(); });
  if (!rule || part == node.inputs.end()) return std::nullopt;
  const DimensionSplit split = *splits[index_of(*part)];
  if (rule->keeps_order)
    return passes::reshaped(split, graph.shape(node.inputs[0]), graph.shape(node.outputs[0]), kHalves);
  const int label = rule->inputs[static_cast<size_t>(part - node.inputs.begin())][static_cast<size_t>(split.dimension)];
  const auto dimension = passes::dimension_of(rule->outputs[output], label);
  if (!dimension) return std::nullopt;
  return DimensionSplit{*dimension, split.blocks};
}

/// Per value how its rows lie among those of the doubled graph; nullopt where it depends on none.
std::vector<std::optional<DimensionSplit>> find_row_splits(const Graph& own, const Graph& twice) {
  if (own.values().size() != twice.values().size() || own.nodes().size() != twice.nodes().size())
    fail(ErrorKind::internal, "'{}' is another graph where it reads twice as many rows", own.name());
  std::vector<std::optional<DimensionSplit>> splits(twice.values().size());
  const auto note = [&](ValueId value, const std::optional<DimensionSplit>& by_rule) {
    const auto dimension = doubled_dimension(own.shape(value), twice.shape(value));
    if (!dimension) return;
    const bool agrees = by_rule && by_rule->dimension == *dimension;
    splits[index_of(value)] = agrees ? *by_rule : DimensionSplit{*dimension};
  };
  for (const GraphInput& input : twice.inputs()) note(input.value, std::nullopt);
  for (const Node& node : twice.nodes())
    for (size_t output = 0; output < node.outputs.size(); ++output)
      note(node.outputs[output], split_behind(twice, node, splits, output));
  return splits;
}

/// Elements that lie behind each other in a piece as in the whole.
int64_t block_of(const Shape& own, const DimensionSplit& split) {
  int64_t block = own[split.dimension] / split.blocks;
  for (int inner = split.dimension + 1; inner < own.rank(); ++inner) block *= own[inner];
  return block;
}

}  // namespace

std::string name_of_micro_place(int64_t micro_batch) { return fmt::format("{}/{}", kDrawPlace, micro_batch); }

int64_t pieces_of_batch(const spec::RunSpec& spec, int ranks) {
  if (trains_apart(spec)) return 1;
  if (spec.virtual_ranks > 0) return spec.virtual_ranks;
  if (spec.balance.grains > 0) return spec.balance.grains;
  return ranks * micro_batches_of(spec);
}

int64_t pieces_of_update(const spec::RunSpec& spec, int ranks) {
  int64_t batches = 1;
  for (const spec::Stage& stage : spec::stages_of(spec)) batches = std::max(batches, stage.accumulate);
  return batches * pieces_of_batch(spec, ranks);
}

bool draws(const Graph& graph) { return std::any_of(graph.nodes().begin(), graph.nodes().end(), is_draw); }

void draw_by_global_index(models::Model& model, const Graph* twice, int64_t pieces) {
  const Graph& graph = model.graph;
  const std::vector<std::optional<DimensionSplit>> splits =
      twice != nullptr
          ? find_row_splits(graph, *twice)
          : std::vector<std::optional<DimensionSplit>>(graph.values().size(), std::optional(DimensionSplit{}));
  Rewriter rewriter(graph);
  ValueId place;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id = passes::node_at(index);
    const Node& node = graph.node(id);
    const auto& split = splits[index_of(node.inputs.empty() ? ValueId{0} : node.inputs[0])];
    if (!is_draw(node) || !split) {
      rewriter.copy(id);
      continue;
    }
    Graph& result = rewriter.result();
    if (!place.valid()) place = result.add_input(InputKind::scalar, kDrawPlace, {DType::i64, {}, {}});
    Attributes attributes = node.attributes;
    attributes.set("blocks", std::vector<int64_t>{block_of(graph.shape(node.inputs[0]), *split)});
    attributes.set("parts", std::vector<int64_t>{pieces});
    std::vector<ValueId> operands = rewriter.map(node.inputs);
    operands.push_back(place);
    rewriter.replace(node.outputs[0], result.add(node.op->name, operands, attributes, graph.node_name(id)));
  }
  for (ValueId* value : {&model.input, &model.labels, &model.logits, &model.losses, &model.correct, &model.extra_loss})
    if (value->valid()) *value = rewriter.map(*value);
  model.graph = rewriter.finish();
}

}  // namespace weft::step
