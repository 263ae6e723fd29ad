// A few rows times a matrix whose rows lie one after the other; compiled per instruction set (multiversion.h).

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

template <int64_t rows, typename T, typename Result>
void few_rows(const T* x, const T* matrix, int64_t depth, int64_t begin, int64_t end, int64_t width, Result* y) {
  constexpr int64_t kBeside = 4;
  float sums[rows * kBeside];
  const auto put = [&](int64_t first, int64_t count) {
    for (int64_t column = 0; column < count; ++column)
      for (int64_t row = 0; row < rows; ++row)
        store<float>(y + row * width + first + column, sums[column * rows + row]);
  };
  int64_t column = begin;
  for (; column + kBeside <= end; column += kBeside) {
    dot_products<rows, kBeside>(x, matrix + column * depth, depth, sums);
    put(column, kBeside);
  }
  for (; column < end; ++column) {
    dot_products<rows, 1>(x, matrix + column * depth, depth, sums);
    put(column, 1);
  }
}

template <typename T, typename Result>
void multiply(const T* x, const T* matrix, int64_t rows, int64_t depth, int64_t begin, int64_t end, int64_t width,
              Result* y) {
  // Each row gives the same bits beside whatever others: some numbers of rows are made of others, for the library's
  // size.
#if WEFT_LANES > 4
  if (rows == 4) return few_rows<4>(x, matrix, depth, begin, end, width, y);
  if (rows >= 2) {
    few_rows<2>(x, matrix, depth, begin, end, width, y);
    x += 2 * depth;
    y += 2 * width;
    rows -= 2;
  }
#endif
  for (int64_t row = 0; row < rows; ++row)
    few_rows<1>(x + row * depth, matrix, depth, begin, end, width, y + row * width);
}

template <typename T>
constexpr Loops<T> loops{multiply<T, T>, multiply<T, float>};
