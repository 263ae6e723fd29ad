// What oneDNN has found of the CPU.
#pragma once

#include "weft/tensor/dtype.h"

namespace weft::onednn {

/// True where the CPU has instructions that multiply this type faster than f32, and oneDNN uses them.
bool multiplies_fast(DType dtype);

}  // namespace weft::onednn
