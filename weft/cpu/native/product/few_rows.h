// A few rows times a matrix whose rows lie one after the other, as it is: nothing is packed first.
#pragma once

#include <cstdint>

#include "weft/base/isa.h"

namespace weft::native {

/// Columns [begin, end) of y [rows, width] = x [rows, depth] matrix^T, with a matrix [width, depth]; rows from 1 to 4.
/// A row has the same bits beside whatever others.
template <typename T>
using MultiplyFewRows = void (*)(const T* x, const T* matrix, int64_t rows, int64_t depth, int64_t begin, int64_t end,
                                 int64_t width, float* y);
/// T: f32 or Bf16, in memory; all computes in f32.
template <typename T>
MultiplyFewRows<T> multiply_few_rows(Isa isa);

}  // namespace weft::native
