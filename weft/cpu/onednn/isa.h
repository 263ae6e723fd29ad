// What oneDNN has found of the CPU.
#pragma once

#include <string>

#include "weft/tensor/dtype.h"

namespace weft::onednn {

/// True where the CPU has instructions that multiply this type faster than f32, and oneDNN uses them.
bool multiplies_fast(DType dtype);

/// The instructions that oneDNN uses, which ONEDNN_MAX_CPU_ISA can limit, as that variable names them: "AVX2",
/// "AVX512_CORE_BF16". "unknown" for what is newer than this.
std::string effective_isa();

/// "2.6.3"
std::string library_version();

}  // namespace weft::onednn
