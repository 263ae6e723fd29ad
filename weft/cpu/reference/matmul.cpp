// Matrix product, batched over broadcast leading dimensions.
#include <type_traits>

#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

/// Walks the matrices of an operand in the order of the output's leading dimensions.
StridedView batch_view(const Shape& operand, const Shape& result) {
  const auto leading = [](const Shape& shape) { return Shape(std::vector<int64_t>(shape.begin(), shape.end() - 2)); };
  return broadcast_view(leading(operand), leading(result));
}

/// The steps through the operands of one node, in elements.
struct ProductWalk {
  int64_t rows, columns, depth, batch;
  int64_t a_row, a_term, b_column, b_term;  // for one more row, column and term of the sum
  StridedView a_matrix, b_matrix;

  explicit ProductWalk(const NodeSignature& node)
      : a_matrix(batch_view(node.inputs[0].shape, node.outputs[0].shape)),
        b_matrix(batch_view(node.inputs[1].shape, node.outputs[0].shape)) {
    const Shape &a = node.inputs[0].shape, &c = node.outputs[0].shape;
    const bool transpose_a = node.attributes.boolean("transpose_a");
    const bool transpose_b = node.attributes.boolean("transpose_b");
    rows = c[c.rank() - 2], columns = c[c.rank() - 1];
    depth = a[a.rank() - (transpose_a ? 2 : 1)];
    batch = rows * columns == 0 ? 0 : c.elements() / (rows * columns);
    a_row = transpose_a ? 1 : depth, a_term = transpose_a ? rows : 1;
    b_column = transpose_b ? depth : 1, b_term = transpose_b ? 1 : columns;
  }
  /// Calls visit(result, first term of a, first term of b) for every element of the product.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (int64_t index = 0; index < batch; ++index) {
      const int64_t left = a_matrix(index) * rows * depth, right = b_matrix(index) * depth * columns;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          visit((index * rows + row) * columns + column, left + row * a_row, right + column * b_column);
    }
  }
};

Body prepare_matmul(const NodeSignature& node) {
  return [walk = ProductWalk(node)](const KernelArguments& call) {
    walk.for_each([&](int64_t result, int64_t left, int64_t right) {
      double sum = 0;
      for (int64_t k = 0; k < walk.depth; ++k)
        sum += static_cast<double>(input(call, 0)[left + k * walk.a_term]) *
               static_cast<double>(input(call, 1)[right + k * walk.b_term]);
      output(call, 0)[result] = static_cast<float>(sum);
    });
  };
}

/// Of f64, or of integers, which wrap around.
Body prepare_matmul_of_numbers(const NodeSignature& node) {
  const DType dtype = node.outputs[0].dtype;
  return visit_number(dtype, [&](auto zero) -> Body {
    using Sum = std::conditional_t<std::is_same_v<decltype(zero), double>, double, uint64_t>;
    return [=, walk = ProductWalk(node)](const KernelArguments& call) {
      walk.for_each([&](int64_t result, int64_t left, int64_t right) {
        Sum sum = 0;
        for (int64_t k = 0; k < walk.depth; ++k)
          sum += load_as<Sum>(dtype, call.inputs[0], left + k * walk.a_term) *
                 load_as<Sum>(dtype, call.inputs[1], right + k * walk.b_term);
        store_number(dtype, call.outputs[0], result, sum);
      });
    };
  });
}

}  // namespace

void add_matmul(KernelTable& table) { add_numbers(table, "matmul", prepare_matmul, prepare_matmul_of_numbers); }

}  // namespace weft::reference
