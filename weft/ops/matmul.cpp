// Matrix products, batched over leading dimensions that broadcast.
#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"

namespace weft::ops {
namespace {

/// Rows and columns of an operand as it enters the product.
Pair matrix_of(const Shape& shape, bool transposed) {
  const int rank = shape.rank();
  const int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  return transposed ? Pair{columns, rows} : Pair{rows, columns};
}

Shape leading_of(const Shape& shape) { return Shape(std::vector<int64_t>(shape.begin(), shape.end() - 2)); }

/// A real type, or integers wide enough for sums of products.
DType require_factor_type(const InferContext& context) {
  const DType dtype = context.dtype(0);
  const bool is_wide = dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u32 || dtype == DType::u64;
  return is_wide ? dtype : require_real(context, 0);
}

std::vector<TensorType> infer_matmul(const InferContext& context) {
  const DType dtype = require_factor_type(context), product = result_dtype(context, dtype);
  if (product != dtype) context.require_compute_dtype(0);
  context.require_dtype(1, dtype);
  for (const int operand : {0, 1}) {
    if (context.shape(operand).rank() < 2) {
      context.fail(fmt::format("operands are matrices or stacks of them (rank 2 or more), got {}; reshape it first",
                               context.describe(operand)));
    }
  }
  const Shape &a = context.shape(0), &b = context.shape(1);
  const bool transpose_a = context.attributes.boolean("transpose_a");
  const bool transpose_b = context.attributes.boolean("transpose_b");
  const Pair left = matrix_of(a, transpose_a), right = matrix_of(b, transpose_b);
  if (left[1] != right[0]) {
    context.fail(fmt::format("{}{} has rows of {} elements, but {}{} has columns of {}", context.describe(0),
                             transpose_a ? " transposed" : "", left[1], context.describe(1),
                             transpose_b ? " transposed" : "", right[0]));
  }
  const auto leading = broadcast_shapes(leading_of(a), leading_of(b));
  if (!leading) {
    context.fail(fmt::format("leading dimensions of {} and {} do not broadcast; they must be equal or 1",
                             context.describe(0), context.describe(1)));
  }
  std::vector<int64_t> dims = leading->dims();
  dims.push_back(left[0]);
  dims.push_back(right[1]);
  return {typed(product, Shape(dims))};
}

/// All leading dimensions in one: [B,T,K] -> [B*T,K].
ValueId flatten_rows(Graph& graph, ValueId x) {
  const int64_t columns = graph.shape(x)[graph.shape(x).rank() - 1];
  return reshape(graph, x, {-1, columns});
}

/// With C = A B: dA = dC B^T and dB = A^T dC; an operand stored transposed gets the transposed product.
std::vector<ValueId> grad_matmul(GradContext& context) {
  Graph& graph = context.graph;
  const Attributes attributes = attributes_of(context);
  const bool transpose_a = attributes.boolean("transpose_a"), transpose_b = attributes.boolean("transpose_b");
  const ValueId a = context.inputs[0], b = context.inputs[1];
  const ValueId gradient = as_dtype(graph, context.output_gradients[0], graph.type(a).dtype);
  const Shape a_shape = graph.shape(a), b_shape = graph.shape(b);
  const std::string a_name = gradient_name(context, "a"), b_name = gradient_name(context, "b");

  const ValueId a_gradient = transpose_a ? matmul(graph, b, gradient, transpose_b, true, a_name)
                                         : matmul(graph, gradient, b, false, !transpose_b, a_name);
  // One matrix b for a stack of rows: a single product sums over the stack, without an array per member.
  const bool one_matrix = b_shape.rank() == 2 && a_shape.rank() > 2 && !transpose_a;
  const ValueId rows = one_matrix ? flatten_rows(graph, a) : a;
  const ValueId row_gradients = one_matrix ? flatten_rows(graph, gradient) : gradient;
  const ValueId b_gradient = transpose_b ? matmul(graph, row_gradients, rows, true, transpose_a, b_name)
                                         : matmul(graph, rows, row_gradients, !transpose_a, false, b_name);
  return {sum_to_shape(graph, a_gradient, a_shape), sum_to_shape(graph, b_gradient, b_shape)};
}

/// Rows, columns, what is summed over, and the leading dimensions that both or one of them have.
DimensionRule matmul_dimensions(const DimensionContext& context) {
  const int rank = context.outputs[0].shape.rank(), rows = rank - 2, columns = rank - 1, summed = rank;
  const auto labels_of = [&](const Shape& shape, bool transposed, int first, int second) {
    std::vector<int> labels(static_cast<size_t>(shape.rank()), DimensionRule::kWhole);
    for (int dimension = 0; dimension < shape.rank() - 2; ++dimension)
      if (shape[dimension] > 1) labels[static_cast<size_t>(dimension)] = dimension + rank - shape.rank();
    labels[labels.size() - 2] = transposed ? second : first;
    labels[labels.size() - 1] = transposed ? first : second;
    return labels;
  };
  DimensionRule rule;
  rule.inputs = {labels_of(context.inputs[0].shape, context.attributes.boolean("transpose_a"), rows, summed),
                 labels_of(context.inputs[1].shape, context.attributes.boolean("transpose_b"), summed, columns)};
  rule.outputs = {labels_of(context.outputs[0].shape, false, rows, columns)};
  return rule;
}

OpExample example(std::string label, Shape a, Shape b, bool transpose_a = false, bool transpose_b = false) {
  return {std::move(label),
          {f32(std::move(a)), f32(std::move(b))},
          {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
          {}};
}

}  // namespace

void add_matmul_ops(OpRegistry& registry) {
  OpDef op;
  op.name = "matmul";
  op.summary = "Matrix product of the last two dimensions; leading dimensions broadcast.";
  op.inputs = {"a", "b"};
  op.outputs = {"product"};
  op.attributes = {attribute("transpose_a", false, "a is stored with its last two dimensions swapped"),
                   attribute("transpose_b", false, "b is stored with its last two dimensions swapped"),
                   result_dtype_attribute()};
  op.infer = infer_matmul;
  op.gradient = grad_matmul;
  op.dimensions = matmul_dimensions;
  op.flops = [](const auto& inputs, const auto& outputs, const Attributes& attributes) {
    return 2 * outputs[0].elements() * matrix_of(inputs[0].shape, attributes.boolean("transpose_a"))[1];
  };
  op.precision = PrecisionRule::reduced;
  op.examples = {example("matrices", {3, 5}, {5, 4}),
                 example("multiples of 16", {16, 32}, {32, 16}),
                 example("linear layer: b transposed", {7, 10}, {3, 10}, false, true),
                 example("few rows, b transposed", {3, 37}, {21, 37}, false, true),
                 example("a transposed", {6, 3}, {6, 5}, true, false),
                 example("both transposed", {6, 3}, {5, 6}, true, true),
                 example("one row", {1, 9}, {9, 17}),
                 example("one column", {9, 4}, {4, 1}),
                 example("batch", {3, 2, 4}, {3, 4, 5}),
                 example("heads, b transposed", {2, 3, 4, 5}, {2, 3, 6, 5}, false, true),
                 example("batch, a transposed", {2, 4, 3}, {2, 4, 5}, true, false),
                 example("batch, both transposed", {2, 4, 3}, {2, 5, 4}, true, true),
                 example("one matrix for a batch", {2, 3, 4}, {4, 5}),
                 example("one transposed matrix for a batch", {2, 3, 4}, {5, 4}, false, true),
                 example("one matrix on the left", {3, 4}, {2, 4, 5}),
                 example("one matrix for a transposed batch", {2, 4, 3}, {4, 5}, true, false),
                 example("broadcast on both sides", {2, 1, 3, 4}, {1, 3, 4, 2})};
  registry.add(of_work(work::kMatrixProducts, std::move(op)));
}

ValueId matmul(Graph& graph, ValueId a, ValueId b, bool transpose_a, bool transpose_b, const std::string& name) {
  return graph.add("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}, name);
}

}  // namespace weft::ops
