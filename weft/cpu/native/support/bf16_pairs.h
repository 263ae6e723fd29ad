// What the loops that multiply pairs of bf16 numbers (AVX512_BF16) share.
#pragma once

#include <immintrin.h>

#define WEFT_BF16_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace weft::native {

/// Lane by lane the number of `first` in the lower half, that of `second` in the upper. (gcc 12 warns of its own header
/// where no mask is given.)
WEFT_BF16_TARGET inline __m512i pair_of(__m256i first, __m256i second) {
  constexpr __mmask16 kAll = 0xffff;
  const __m512i low = _mm512_maskz_cvtepu16_epi32(kAll, first), high = _mm512_maskz_cvtepu16_epi32(kAll, second);
  return _mm512_or_si512(low, _mm512_maskz_slli_epi32(kAll, high, 16));
}

}  // namespace weft::native
