// Products of a few rows with columns of a matrix whose columns lie one after the other. Included by loop headers
// inside an instruction set's namespace (multiversion.h), so without an include guard.

/// sums[column * rows + row] of `columns` rows of the matrix, beside each other so that memory is read in four streams.
template <int64_t rows, int64_t columns, typename T>
WEFT_INLINE void dot_products(const T* x, const T* matrix, int64_t depth, float* sums) {
  FloatVector totals[rows * columns] = {};
  int64_t at = 0;
  for (; at + kLanes <= depth; at += kLanes) {
    FloatVector left[rows];
    for (int64_t row = 0; row < rows; ++row) left[row] = load<FloatVector>(x + row * depth + at);
    for (int64_t column = 0; column < columns; ++column) {
      const FloatVector right = load<FloatVector>(matrix + column * depth + at);
      for (int64_t row = 0; row < rows; ++row) totals[column * rows + row] += left[row] * right;
    }
  }
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t row = 0; row < rows; ++row) {
      float sum = sum_across_lanes(totals[column * rows + row]);
      for (int64_t rest = at; rest < depth; ++rest)
        sum += load<float>(x + row * depth + rest) * load<float>(matrix + column * depth + rest);
      sums[column * rows + row] = sum;
    }
}
