// Matrix product, batched over broadcast leading dimensions.
#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

/// Walks the matrices of an operand in the order of the output's leading dimensions.
StridedView batch_view(const Shape& operand, const Shape& result) {
  const auto leading = [](const Shape& shape) { return Shape(std::vector<int64_t>(shape.begin(), shape.end() - 2)); };
  return broadcast_view(leading(operand), leading(result));
}

Body prepare_matmul(const NodeSignature& node) {
  const Shape &a = node.inputs[0].shape, &b = node.inputs[1].shape, &c = node.outputs[0].shape;
  const bool transpose_a = node.attributes.boolean("transpose_a"), transpose_b = node.attributes.boolean("transpose_b");
  const int64_t rows = c[c.rank() - 2], columns = c[c.rank() - 1];
  const int64_t depth = a[a.rank() - (transpose_a ? 2 : 1)];
  const int64_t batch = rows * columns == 0 ? 0 : c.elements() / (rows * columns);
  // Steps in elements for one more row, column and term of the sum.
  const int64_t a_row = transpose_a ? 1 : depth, a_term = transpose_a ? rows : 1;
  const int64_t b_column = transpose_b ? depth : 1, b_term = transpose_b ? 1 : columns;
  return [=, a_matrix = batch_view(a, c), b_matrix = batch_view(b, c)](const KernelArguments& call) {
    for (int64_t index = 0; index < batch; ++index) {
      const float* left = input(call, 0) + a_matrix(index) * rows * depth;
      const float* right = input(call, 1) + b_matrix(index) * depth * columns;
      float* result = output(call, 0) + index * rows * columns;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          double sum = 0;
          for (int64_t k = 0; k < depth; ++k)
            sum += static_cast<double>(left[row * a_row + k * a_term]) *
                   static_cast<double>(right[column * b_column + k * b_term]);
          result[row * columns + column] = static_cast<float>(sum);
        }
    }
  };
}

}  // namespace

void add_matmul(KernelTable& table) { add_plain(table, "matmul", prepare_matmul); }

}  // namespace weft::reference
