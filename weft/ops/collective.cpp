// Collectives: what all ranks of a run compute together. A rank that is alone gets back what it gave.
#include "weft/graph/collective.h"

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

void require_reduction(const InferContext& context) {
  const std::string& reduction = context.attributes.text("reduction");
  if (reduction != "sum" && reduction != "mean")
    context.fail("reduction \"" + reduction + "\" is not known; give \"sum\" or \"mean\"");
}

void require_number(const InferContext& context) {
  if (context.input_count() > kMostTensorsInCollective)
    context.fail(
        fmt::format("takes {} tensors, at most {} go together", context.input_count(), kMostTensorsInCollective));
}

/// `does`: what the op does with its operands, for the message.
void require_type_of_first(const InferContext& context, int operand, const char* does) {
  if (context.dtype(operand) != context.dtype(0))
    context.fail(fmt::format("{} tensors of one type together, got {} and {}", does, context.describe(0),
                             context.describe(operand)));
}

std::vector<TensorType> same_types(const InferContext& context) {
  require_reduction(context);
  require_number(context);
  std::vector<TensorType> types;
  for (int operand = 0; operand < context.input_count(); ++operand) {
    const DType dtype = context.dtype(operand);
    if (dtype != DType::f32 && dtype != DType::bf16)
      context.fail(fmt::format("reduces f32 and bf16, got {}", context.describe(operand)));
    require_type_of_first(context, operand, "reduces");
    types.push_back(typed(dtype, context.shape(operand)));
  }
  return types;
}

AttributeSpec reduction_attribute() { return attribute("reduction", "mean", "over the ranks: mean, or sum"); }

OpDef all_reduce_op() {
  OpDef op;
  op.name = kAllReduce;
  op.summary = "The mean, or the sum, of a tensor over all ranks, on each of them.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {reduction_attribute()};
  op.infer = same_types;
  // What each rank does with its result, all of them do to the operand of each.
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    return {context.graph.add(kAllReduce, {context.output_gradients[0]}, attributes_of(context),
                              gradient_name(context, "x"))};
  };
  op.layout_rule = LayoutRule::elementwise;
  op.in_place = {{0, 0}};
  op.examples = {{"mean of a matrix", {f32({3, 5})}},
                 {"sum of an image", {f32({2, 3, 3, 2})}, {{"reduction", "sum"}}},
                 {"scalar", {f32({})}}};
  return op;
}

/// Both halves of all_reduce, of any number of tensors of one type.
OpDef half_op(const char* name, std::string summary, std::string from, std::string to, const AttributeSpec& own) {
  OpDef op;
  op.name = name;
  op.summary = std::move(summary);
  op.inputs = {std::move(from)};
  op.outputs = {std::move(to)};
  op.attributes = {required_attribute("number", int64_t{0}, "of the collective in its graph"),
                   required_attribute("tensors", "", "what is reduced, for messages"), reduction_attribute(), own};
  op.infer = same_types;
  for (int tensor = 0; tensor < kMostTensorsInCollective; ++tensor) op.in_place.emplace_back(tensor, tensor);
  const Attributes attributes{{"number", int64_t{3}}, {"tensors", "conv.weight"}};
  op.examples = {{"one tensor", {f32({3, 5})}, attributes},
                 {"vector", {f32({17})}, attributes},
                 {"three tensors", {f32({2, 3, 3, 2}), f32({7}), f32({})}, attributes}};
  return op;
}

int64_t require_ranks(const InferContext& context) {
  const int64_t ranks = context.attributes.integer("ranks");
  if (ranks < 1) context.fail(fmt::format("gathers from at least one rank, got {}", ranks));
  require_number(context);
  for (int operand = 0; operand < context.input_count(); ++operand) {
    const int64_t bytes = size_of(context.dtype(operand));
    if (bytes != 2 && bytes != 4)
      context.fail(fmt::format("gathers elements of 2 or 4 bytes, got {}", context.describe(operand)));
    require_type_of_first(context, operand, "gathers");
    if (context.shape(operand).rank() < 1)
      context.fail(fmt::format("puts parts behind each other along the first dimension, and {} has none",
                               context.describe(operand)));
  }
  return ranks;
}

/// [r,...] of each rank -> [ranks*r,...]
std::vector<TensorType> gathered_types(const InferContext& context) {
  const int64_t ranks = require_ranks(context);
  std::vector<TensorType> types;
  for (int operand = 0; operand < context.input_count(); ++operand) {
    std::vector<int64_t> dims = context.shape(operand).dims();
    dims[0] *= ranks;
    types.push_back(typed(context.dtype(operand), Shape(dims)));
  }
  return types;
}

std::vector<TensorType> types_under_way(const InferContext& context) {
  const int64_t ranks = require_ranks(context);
  std::vector<TensorType> types;
  for (int operand = 0; operand < context.input_count(); ++operand) {
    if (context.shape(operand)[0] % ranks != 0)
      context.fail(fmt::format("{} cannot hold equal parts of {} ranks", context.describe(operand), ranks));
    types.push_back(typed(context.dtype(operand), context.shape(operand)));
  }
  return types;
}

AttributeSpec ranks_attribute() { return required_attribute("ranks", int64_t{2}, "of the run"); }

/// Made by passes and by what is added behind the gradients: nothing differentiates it.
OpDef all_gather_op() {
  OpDef op;
  op.name = kAllGather;
  op.summary = "The parts of all ranks behind each other, on each of them.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {ranks_attribute()};
  op.infer = gathered_types;
  op.precision = PrecisionRule::follow;  // what is narrow travels narrow
  op.examples = {{"rows of a matrix", {f32({3, 5})}, {{"ranks", int64_t{2}}}},
                 {"indices", {i32({7})}, {{"ranks", int64_t{3}}}, {{0, 100}}},
                 {"one rank", {f32({2, 3, 4})}, {{"ranks", int64_t{1}}}}};
  return op;
}

OpDef half_of_gather(const char* name, std::string summary, std::string from, std::string to, bool is_start) {
  OpDef op;
  op.name = name;
  op.summary = std::move(summary);
  op.inputs = {std::move(from)};
  op.outputs = {std::move(to)};
  op.attributes = {required_attribute("number", int64_t{0}, "of the collective in its graph"),
                   required_attribute("tensors", "", "what is gathered, for messages"), ranks_attribute()};
  op.infer = is_start ? gathered_types : types_under_way;
  if (!is_start)
    for (int tensor = 0; tensor < kMostTensorsInCollective; ++tensor) op.in_place.emplace_back(tensor, tensor);
  const Attributes attributes{{"number", int64_t{3}}, {"tensors", "fc.input"}, {"ranks", int64_t{2}}};
  op.examples = {{"one tensor", {f32({4, 5})}, attributes},
                 {"vector", {f32({16})}, attributes},
                 {"two tensors", {f32({2, 3, 3, 2}), f32({8})}, attributes}};
  return op;
}

}  // namespace

void add_collective_ops(OpRegistry& registry) {
  registry.add(all_gather_op());
  registry.add(half_of_gather(kAllGatherStart, "Begins to gather the parts of all ranks; made by a pass only.", "x...",
                              "pending...", /*is_start=*/true));
  registry.add(half_of_gather(kAllGatherWait, "Waits for the parts of all ranks; made by a pass only.", "pending...",
                              "y...", /*is_start=*/false));
  registry.add(all_reduce_op());
  registry.add(half_op(
      kAllReduceStart, "Begins to reduce tensors over all ranks; made by a pass only.", "x...", "pending...",
      attribute(kPriority, int64_t{0}, "between hosts: what has a lower one goes first, else what began first")));
  registry.add(half_op(kAllReduceWait, "Waits for tensors that are reduced over all ranks; made by a pass only.",
                       "pending...", "y...",
                       attribute(kDeferred, false, "the plan may wait in the next run, where what follows is needed")));
}

ValueId all_reduce(Graph& graph, ValueId x, const std::string& reduction, const std::string& name) {
  return graph.add(kAllReduce, {x}, {{"reduction", reduction}}, name);
}

}  // namespace weft::ops
