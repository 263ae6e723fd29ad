// What becomes of sums in registers of AVX-512: 64 of them as integers of 8 bits, of the kind `real` of
// weft/ops/integer/requantization.h. For files that compile for processors with AVX512_VNNI, on x86-64 only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "weft/ops/integer/requantization.h"

#define WEFT_VNNI_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

namespace weft::native {

inline constexpr __mmask16 kAllLanes = 0xffff;  // gcc 12 warns of its own header where no mask is given

/// What is the same for all sums.
struct VnniEnd {
  __m512i zero_points, low, high;
  __mmask64 bytes;  // that are written
  bool is_signed;   // they are i8, else u8
};

/// Of `count` results, 1 to 64.
WEFT_VNNI_TARGET inline VnniEnd vnni_end(int32_t zero_point, const ops::IntegerRange& range, bool is_signed,
                                         int64_t count) {
  return {_mm512_set1_epi16(static_cast<int16_t>(zero_point)), _mm512_set1_epi8(static_cast<char>(range.low)),
          _mm512_set1_epi8(static_cast<char>(range.high)), count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1,
          is_signed};
}

/// 16 sums times their factors as whole steps, half to even. What i32 does not hold becomes its least number, as a NaN
/// does; so what is too large is cut off before.
WEFT_VNNI_TARGET inline __attribute__((always_inline)) __m512i whole_steps(__m512i sums, const float* factors) {
  const __m512 most = _mm512_set1_ps(1073741824.0f);
  const __m512 steps = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAllLanes, sums), _mm512_loadu_ps(factors));
  // The minimum gives its second operand where one is a NaN.
  return _mm512_maskz_cvt_roundps_epi32(kAllLanes, _mm512_maskz_min_ps(kAllLanes, most, steps),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// Quarter by quarter: four numbers of each of the four vectors. Adding the zero point saturates in 16 bits, where
/// whatever saturates lies beyond the limits of 8.
WEFT_VNNI_TARGET inline __attribute__((always_inline)) __m512i pack_steps(const __m512i (&steps)[4],
                                                                          const VnniEnd& end) {
  const __m512i left = _mm512_adds_epi16(_mm512_packs_epi32(steps[0], steps[1]), end.zero_points);
  const __m512i right = _mm512_adds_epi16(_mm512_packs_epi32(steps[2], steps[3]), end.zero_points);
  if (end.is_signed) return _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(left, right), end.low), end.high);
  return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(left, right), end.low), end.high);
}

}  // namespace weft::native
