// One element of any dtype as a number, and back: what a cast means.
#pragma once

#include <cstdint>

#include "weft/tensor/dtype.h"

namespace weft {

double load_element(DType dtype, const void* data, int64_t index);
/// Rounds floating types to nearest even and truncates towards zero into integers, saturating; NaN becomes 0 there.
void store_element(DType dtype, void* data, int64_t index, double value);

}  // namespace weft
