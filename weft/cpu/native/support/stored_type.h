// The types in which numbers lie in memory. Loops are templates over them: what they read is widened to f32, and what
// they write is rounded once, at the store (vector.h).
#pragma once

#include <cstdint>
#include <utility>

#include "weft/tensor/dtype.h"

namespace weft::native {

/// The bits of a bf16 number.
struct Bf16 {
  uint16_t bits;
};

/// True for f32 and bf16.
inline bool is_stored_type(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

/// What visit returns for a number of the stored type that the dtype has: f32 (float) or bf16 (Bf16).
template <typename Visit>
auto with_stored_type(DType dtype, Visit&& visit) {
  return dtype == DType::bf16 ? visit(Bf16{}) : visit(float{});
}

}  // namespace weft::native
