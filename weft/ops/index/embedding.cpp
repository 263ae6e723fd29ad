// Rows of a table, chosen by index.
#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {
namespace {

std::vector<TensorType> infer_embedding(const InferContext& context) {
  context.require_rank(0, 2);
  context.require_dtype(0, DType::f32);
  context.require_dtype(1, DType::i32);
  require_place(context, 2);
  std::vector<int64_t> dims = context.shape(1).dims();
  dims.push_back(context.shape(0)[1]);
  return {f32(Shape(dims))};
}

std::vector<TensorType> infer_embedding_backward(const InferContext& context) {
  context.require_dtype(0, DType::f32);
  context.require_dtype(1, DType::i32);
  require_place(context, 2);
  const Shape &gradient = context.shape(0), &indices = context.shape(1);
  const bool fits = gradient.rank() == indices.rank() + 1 &&
                    std::vector<int64_t>(gradient.begin(), gradient.end() - 1) == indices.dims();
  if (!fits) {
    context.fail(fmt::format("the output gradient has the shape of the indices {} and one axis more, got {}",
                             context.describe(1), context.describe(0)));
  }
  const int64_t rows = context.attributes.integer("rows");
  if (rows < 1) context.fail(fmt::format("rows must be at least 1, got {}", rows));
  return {f32({rows, gradient[gradient.rank() - 1]})};
}

std::vector<ValueId> grad_embedding(GradContext& context) {
  const Attributes rows{{"rows", context.graph.shape(context.inputs[0])[0]}};
  std::vector<ValueId> operands = context.inputs;
  operands[0] = context.output_gradients[0];
  std::vector<ValueId> gradients(operands.size());
  gradients[0] = context.graph.add("embedding_backward", operands, rows, gradient_name(context, "table"));
  return gradients;
}

std::vector<ValueId> grad_embedding_backward(GradContext& context) {
  std::vector<ValueId> operands = context.inputs;
  operands[0] = context.output_gradients[0];
  std::vector<ValueId> gradients(operands.size());
  gradients[0] = context.graph.add("embedding", operands, {}, gradient_name(context, "output_gradient"));
  return gradients;
}

OpExample forward_example(std::string label, Shape table, Shape indices) {
  const double rows = static_cast<double>(table[0]);
  return {std::move(label), {f32(std::move(table)), i32(std::move(indices))}, {}, {{-1, 1}, {0, rows}}};
}

OpExample backward_example(std::string label, Shape indices, int64_t width, int64_t rows) {
  std::vector<int64_t> dims = indices.dims();
  dims.push_back(width);
  return {std::move(label),
          {f32(Shape(dims)), i32(std::move(indices))},
          {{"rows", rows}},
          {{-1, 1}, {0, static_cast<double>(rows)}}};
}

/// Where indices go up to `rows`, two tables' worth.
OpExample with_place(OpExample example, double rows) {
  example.inputs.push_back(i64({}));
  example.ranges[1] = {0, rows};
  example.ranges.push_back({1, 2});
  return example;
}

}  // namespace

void add_embedding_ops(OpRegistry& registry) {
  OpDef op;
  op.name = "embedding";
  op.summary =
      "The rows of a table [V,D] that the indices name; every index lies in [0, V). With a place p the table is the "
      "pth "
      "of equal parts of one, and zeros stand for rows of the others.";
  op.inputs = {"table", "indices", "place?"};
  op.outputs = {"rows"};
  op.infer = infer_embedding;
  op.gradient = grad_embedding;
  op.dimensions = [](const DimensionContext& context) {
    const int rank = context.inputs[1].shape.rank(), column = rank, row = rank + 1;
    return DimensionRule{.inputs = {{row, column}, count_up(rank)}, .outputs = {count_up(rank + 1)}, .placed = {row}};
  };
  op.examples = {forward_example("sequences", {7, 4}, {2, 3}), forward_example("repeated indices", {2, 5}, {9}),
                 forward_example("one index", {4, 16}, {}), forward_example("rows never named", {20, 3}, {4}),
                 with_place(forward_example("part of a table", {4, 6}, {3, 5}), 8)};
  registry.add(of_work(work::kLookUps, std::move(op)));

  OpDef backward;
  backward.name = "embedding_backward";
  backward.summary =
      "Gradient of embedding: a table of `rows` rows, each the sum of the gradients of its uses; with a place that of "
      "the part.";
  backward.inputs = {"output_gradient", "indices", "place?"};
  backward.outputs = {"table_gradient"};
  backward.attributes = {required_attribute("rows", int64_t{8}, "rows of the table")};
  backward.infer = infer_embedding_backward;
  backward.gradient = grad_embedding_backward;
  backward.dimensions = [](const DimensionContext& context) {
    const int rank = context.inputs[1].shape.rank(), column = rank, row = rank + 1;
    return DimensionRule{.inputs = {count_up(rank + 1), count_up(rank)}, .outputs = {{row, column}}, .placed = {row}};
  };
  backward.of_part = [](Attributes& attributes, const PartContext& context) {
    attributes.set("rows", context.outputs[0][0]);
  };
  backward.flops = [](const auto& inputs, const auto&, const Attributes&) { return inputs[0].elements(); };
  backward.examples = {backward_example("sequences", {2, 3}, 4, 7), backward_example("repeated indices", {9}, 5, 2),
                       backward_example("one index", {}, 16, 4), backward_example("rows never named", {4}, 3, 20),
                       with_place(backward_example("part of a table", {3, 5}, 6, 4), 8)};
  registry.add(of_work(work::kLookUps, std::move(backward)));
}

ValueId embedding(Graph& graph, ValueId table, ValueId indices, const std::string& name) {
  return graph.add("embedding", {table, indices}, {}, name);
}

}  // namespace weft::ops
