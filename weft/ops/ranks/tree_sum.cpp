#include "weft/ops/ranks/tree_sum.h"

#include <algorithm>
#include <bit>

#include "weft/base/error.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

constexpr int kMostPartials = 32;  // of 2^32 values

std::vector<TensorType> infer_tree_sum(const InferContext& context) {
  context.require_dtype(0, DType::f32);
  context.require_rank(1, 0);
  context.require_dtype(1, DType::i64);
  const int partials = context.input_count() - 2;
  if (partials > kMostPartials)
    context.fail(fmt::format("takes {} partial sums, {} are enough for all counts", partials, kMostPartials));
  std::vector<TensorType> types;
  for (int operand = 2; operand < context.input_count(); ++operand) {
    context.require_dtype(operand, DType::f32);
    context.require_same_shape(operand, 0);
    types.push_back(f32(context.shape(operand)));
  }
  return types;
}

OpExample example(std::string label, const Shape& shape, int partials, double index) {
  OpExample example{std::move(label), {f32(shape), i64({})}, {}, {{-1, 1}, {index, index + 1}}};
  for (int partial = 0; partial < partials; ++partial) {
    example.inputs.push_back(f32(shape));
    example.ranges.push_back({-1, 1});
  }
  return example;
}

}  // namespace

TreeSumStep tree_sum_step(int64_t index, int partials) {
  const int joined = std::min(std::countr_one(static_cast<uint64_t>(index)), partials);
  return {joined, std::min(joined, partials - 1)};
}

void add_tree_sum_op(OpRegistry& registry) {
  OpDef op;
  op.name = "tree_sum_update";
  op.summary = "One of several values in turn joins their sum, in the order of a balanced binary tree.";
  op.inputs = {"value", "index", "partial..."};
  op.outputs = {"partial..."};
  op.infer = infer_tree_sum;
  // On average: every second value joins one partial sum, every fourth another one.
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  op.layout_rule = LayoutRule::elementwise;
  op.of_split = {OfSplit::elements};
  for (int partial = 0; partial < kMostPartials; ++partial) op.in_place.emplace_back(partial, partial + 2);
  op.is_update = true;
  op.examples = {example("first of two", {5, 7}, 1, 0),
                 example("last of two", {5, 7}, 1, 1),
                 example("begins anew", {16, 3, 3, 3}, 3, 4),
                 example("carries once", {16, 3, 3, 3}, 3, 5),
                 example("carries twice", {16, 3, 3, 3}, 3, 3),
                 example("last of eight", {33}, 3, 7),
                 example("scalar", {}, 2, 1)};
  registry.add(of_work(work::kUpdates, std::move(op)));
}

std::vector<ValueId> tree_sum_update(Graph& graph, ValueId value, ValueId index, const std::vector<ValueId>& partials,
                                     const std::string& name) {
  std::vector<ValueId> operands{value, index};
  operands.insert(operands.end(), partials.begin(), partials.end());
  return graph.add_node("tree_sum_update", operands, {}, name);
}

}  // namespace weft::ops
