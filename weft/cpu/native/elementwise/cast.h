// Loops that convert numbers from one type into another, for kernels that do so on their way.
#pragma once

#include <cstdint>

#include "weft/base/isa.h"
#include "weft/tensor/dtype.h"

namespace weft::native {

/// Elements [begin, end) of both.
using CastRange = void (*)(void* to, const void* from, int64_t begin, int64_t end);
/// Null where no loop has been written for the pair; there is one between f32 and bf16 or f16, either way.
CastRange cast_range(DType from, DType to, Isa isa);

}  // namespace weft::native
