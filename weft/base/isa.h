// Which instruction set weft's own loops, those of kernels and those of sums over ranks, run with.
#pragma once

#include <string_view>

namespace weft {

enum class Isa {
  baseline,  // what the compiler's default target has (SSE2 on x86-64)
  avx2,      // AVX2 and FMA
  avx512,    // AVX-512 F, BW, DQ, VL
};

/// The best set that this CPU has and the environment variable ONEDNN_MAX_CPU_ISA allows, so that one variable limits
/// oneDNN and weft's own loops alike. Read anew at each call.
Isa detect_isa();
/// True where the CPU multiplies pairs of bf16 numbers (AVX512_BF16) and ONEDNN_MAX_CPU_ISA allows it.
bool multiplies_bf16();
/// True where the CPU multiplies groups of four integers of 8 bits (AVX512_VNNI) and ONEDNN_MAX_CPU_ISA allows it.
bool multiplies_bytes();
/// "avx512"
std::string_view name_of(Isa isa);

}  // namespace weft
