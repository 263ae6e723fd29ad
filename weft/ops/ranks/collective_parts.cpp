#include "weft/ops/ops.h"
#include "weft/ops/ranks/collective.h"
#include "weft/ops/ranks/collective_support.h"

namespace weft::ops {

namespace {

int64_t ranks_of(const InferContext& context, const char* does) {
  const int64_t ranks = context.attributes.integer("ranks");
  if (ranks < 1) context.fail(fmt::format("{} at least one rank, got {}", does, ranks));
  require_number(context);
  return ranks;
}

/// `does`: what is done with parts along the first dimension.
void require_rows(const InferContext& context, int operand, const char* does) {
  if (context.shape(operand).rank() < 1)
    context.fail(fmt::format("{} along the first dimension, and {} has none", does, context.describe(operand)));
}

int64_t require_gathers(const InferContext& context) {
  const int64_t ranks = ranks_of(context, "gathers from");
  for (int operand = 0; operand < context.input_count(); ++operand) {
    require_moves(context, operand, "gathers");
    require_rows(context, operand, "puts parts behind each other");
  }
  return ranks;
}

void require_equal_parts(const InferContext& context, int operand, int64_t ranks) {
  if (context.shape(operand)[0] % ranks != 0)
    context.fail(fmt::format("{} cannot hold equal parts of {} ranks", context.describe(operand), ranks));
}

/// [r,...] of each rank -> [ranks r,...]
std::vector<TensorType> gathered_types(const InferContext& context) {
  const int64_t ranks = require_gathers(context);
  std::vector<TensorType> types = types_of_operands(context);
  for (TensorType& type : types) type.shape[0] *= ranks;
  return types;
}

std::vector<TensorType> types_being_gathered(const InferContext& context) {
  const int64_t ranks = require_gathers(context);
  for (int operand = 0; operand < context.input_count(); ++operand) require_equal_parts(context, operand, ranks);
  return types_of_operands(context);
}

std::vector<TensorType> types_being_scattered(const InferContext& context) {
  const int64_t ranks = ranks_of(context, "scatters over");
  require_reduction(context);
  for (int operand = 0; operand < context.input_count(); ++operand) {
    require_sums(context, operand);
    require_rows(context, operand, "takes parts");
    require_equal_parts(context, operand, ranks);
  }
  return types_of_operands(context);
}

/// [ranks r,...] on each rank -> [r,...]
std::vector<TensorType> scattered_types(const InferContext& context) {
  std::vector<TensorType> types = types_being_scattered(context);
  for (TensorType& type : types) type.shape[0] /= context.attributes.integer("ranks");
  return types;
}

AttributeSpec ranks_attribute() { return required_attribute("ranks", int64_t{2}, "of the run"); }

OpDef all_gather_op() {
  OpDef op;
  op.name = kAllGather;
  op.summary = "The parts of all ranks behind each other, on each of them.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {ranks_attribute(), axis_attribute(),
                   attribute("turn", int64_t{0}, "of several of one tensor, each of which stays a gather of its own")};
  op.infer = gathered_types;
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const DType dtype = context.graph.type(context.inputs[0]).dtype;
    if (!is_floating(dtype)) return {ValueId{}};
    const int64_t ranks = attributes_of(context).integer("ranks");
    const ValueId part =
        reduce_scatter(context.graph, as_dtype(context.graph, context.output_gradients[0], summable(dtype)), ranks,
                       "sum", gradient_name(context, "x"));
    return {as_dtype(context.graph, part, dtype)};
  };
  op.precision = PrecisionRule::follow;  // what is narrow travels narrow
  op.examples = {{"rows of a matrix", {f32({3, 5})}, {{"ranks", int64_t{2}}}},
                 {"indices", {i32({7})}, {{"ranks", int64_t{3}}}, {{0, 100}}},
                 {"one rank", {f32({2, 3, 4})}, {{"ranks", int64_t{1}}}}};
  return op;
}

OpDef all_to_all_op() {
  OpDef op;
  op.name = kAllToAll;
  op.summary = "Of each rank the rows that are for this one, those of the first rank first.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {ranks_attribute(), axis_attribute()};
  op.infer = types_being_gathered;
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    if (!is_floating(context.graph.type(context.inputs[0]).dtype)) return {ValueId{}};
    return {context.graph.add(kAllToAll, {context.output_gradients[0]}, attributes_of(context),
                              gradient_name(context, "x"))};
  };
  op.precision = PrecisionRule::follow;  // what is narrow travels narrow
  op.examples = {{"rows of a matrix", {f32({4, 5})}, {{"ranks", int64_t{2}}}},
                 {"tokens of experts", {f32({3, 2, 4})}, {{"ranks", int64_t{3}}}},
                 {"one rank", {f32({2, 3})}, {{"ranks", int64_t{1}}}}};
  return op;
}

OpDef reduce_scatter_op() {
  OpDef op;
  op.name = kReduceScatter;
  op.summary = "Of the mean, or the sum, of a tensor over all ranks each rank's part.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {ranks_attribute(), reduction_attribute(), axis_attribute()};
  op.infer = scattered_types;
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    const Attributes attributes = attributes_of(context);
    const int64_t ranks = attributes.integer("ranks");
    const bool is_mean = attributes.text("reduction") == "mean";
    // The mean before it travels: a part of the work.
    ValueId part = context.output_gradients[0];
    if (is_mean) part = multiply_scalar(context.graph, part, 1.0 / static_cast<double>(ranks));
    return {all_gather(context.graph, part, ranks, gradient_name(context, "x"))};
  };
  op.examples = {{"mean of the rows of two", {f32({6, 5})}, {{"ranks", int64_t{2}}}},
                 {"sum of a vector", {f32({21})}, {{"ranks", int64_t{3}}, {"reduction", "sum"}}},
                 {"one rank", {f32({2, 3, 4})}, {{"ranks", int64_t{1}}}}};
  return op;
}

OpDef own_part_op() {
  OpDef op;
  op.name = kOwnPart;
  op.summary = "Of a tensor that all ranks have each rank's part: nothing travels.";
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.attributes = {ranks_attribute(), axis_attribute(), attribute("dimension", int64_t{0}, "that is split"),
                   attribute("blocks", int64_t{1}, "of the dimension, each of which is split by itself")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const int64_t ranks = ranks_of(context, "takes the part of one of");
    require_moves(context, 0, "takes a part of");
    require_rows(context, 0, "takes parts");
    TensorType type = typed(context.dtype(0), context.shape(0));
    const int64_t dimension = context.attributes.integer("dimension"), blocks = context.attributes.integer("blocks");
    if (dimension < 0 || dimension >= type.shape.rank() || blocks < 1)
      context.fail(fmt::format("{} has no dimension {} of {} blocks", context.describe(0), dimension, blocks));
    int64_t& size = type.shape[static_cast<int>(dimension)];
    if (size % (ranks * blocks) != 0)
      context.fail(fmt::format("dimension {} of {} cannot hold equal parts of {} ranks{}", dimension,
                               context.describe(0), ranks, blocks > 1 ? fmt::format(" in {} blocks", blocks) : ""));
    size /= ranks;
    return {type};
  };
  op.examples = {{"rows of a matrix", {f32({6, 5})}, {{"ranks", int64_t{2}}}},
                 {"indices", {i32({21})}, {{"ranks", int64_t{3}}}, {{0, 100}}},
                 {"columns in two blocks",
                  {f32({3, 8})},
                  {{"ranks", int64_t{2}}, {"dimension", int64_t{1}}, {"blocks", int64_t{2}}}},
                 {"one rank", {f32({2, 3, 4})}, {{"ranks", int64_t{1}}}}};
  return op;
}

OpDef half_of_gather(const char* name, std::string summary, bool is_start) {
  OpDef op = half_of_collective(name, std::move(summary), is_start, "gathered", {ranks_attribute()});
  op.infer = is_start ? gathered_types : types_being_gathered;
  if (!is_start) put_in_place(op);
  const Attributes attributes{{"number", int64_t{3}}, {"tensors", "fc.input"}, {"ranks", int64_t{2}}};
  op.examples = {{"one tensor", {f32({4, 5})}, attributes},
                 {"vector", {f32({16})}, attributes},
                 {"two tensors", {f32({2, 3, 3, 2}), f32({8})}, attributes}};
  return op;
}

OpDef half_of_scatter(const char* name, std::string summary, bool is_start) {
  OpDef op =
      half_of_collective(name, std::move(summary), is_start, "scattered", {ranks_attribute(), reduction_attribute()});
  op.infer = is_start ? types_being_scattered : scattered_types;
  if (is_start) put_in_place(op);
  const Attributes attributes{{"number", int64_t{3}}, {"tensors", "fc.weight"}, {"ranks", int64_t{2}}};
  op.examples = {{"one tensor", {f32({4, 5})}, attributes},
                 {"vector", {f32({16})}, attributes},
                 {"two tensors", {f32({2, 3, 3, 2}), f32({8})}, attributes}};
  return op;
}

}  // namespace

void add_collectives_of_parts(OpRegistry& registry) {
  registry.add(of_work(work::kCommunication, all_gather_op()));
  registry.add(of_work(work::kCommunication,
                       half_of_gather(kAllGatherStart, "Begins to gather the parts of all ranks; made by a pass only.",
                                      /*is_start=*/true)));
  registry.add(of_work(work::kCommunication,
                       half_of_gather(kAllGatherWait, "Waits for the parts of all ranks; made by a pass only.",
                                      /*is_start=*/false)));
  registry.add(of_work(work::kCommunication, reduce_scatter_op()));
  registry.add(of_work(work::kCommunication, all_to_all_op()));
  registry.add(of_work(work::kCopies, own_part_op()));
  registry.add(
      of_work(work::kCommunication,
              half_of_scatter(kReduceScatterStart,
                              "Begins to reduce tensors of which each rank gets its part; made by a pass only.",
                              /*is_start=*/true)));
  registry.add(
      of_work(work::kCommunication,
              half_of_scatter(kReduceScatterWait, "Waits for this rank's part of reduced tensors; made by a pass only.",
                              /*is_start=*/false)));
}

ValueId all_gather(Graph& graph, ValueId x, int64_t ranks, const std::string& name) {
  return graph.add(kAllGather, {x}, {{"ranks", ranks}}, name);
}

ValueId all_to_all(Graph& graph, ValueId x, int64_t ranks, const std::string& name) {
  return graph.add(kAllToAll, {x}, {{"ranks", ranks}}, name);
}

ValueId own_part(Graph& graph, ValueId x, int64_t ranks, const std::string& name) {
  return graph.add(kOwnPart, {x}, {{"ranks", ranks}}, name);
}

ValueId reduce_scatter(Graph& graph, ValueId x, int64_t ranks, const std::string& reduction, const std::string& name) {
  return graph.add(kReduceScatter, {x}, {{"ranks", ranks}, {"reduction", reduction}}, name);
}

}  // namespace weft::ops
