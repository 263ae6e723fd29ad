#include "weft/cpu/native/convolution/few_positions_tile.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define WEFT_AVX512_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))

namespace weft::native {

namespace {

constexpr __mmask16 kAllLanes = 0xffff;  // gcc 12 warns of its own header where no mask is given

template <int kRows>
WEFT_AVX512_TARGET void multiply_rows(const PositionTile& t, int64_t first) {
  const float* a[kRows];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) a[r] = t.rows[first + r];
  float* const to = t.sums + first * kPositionColumns;
  __m512 sums[kRows][4];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n)
      sums[r][n] = t.adds ? _mm512_loadu_ps(to + r * kPositionColumns + n * 16) : _mm512_setzero_ps();
  const float* b = t.columns;
  for (int64_t piece = 0; piece < t.piece_count; ++piece) {
    const int64_t end = t.pieces[piece] + 16;
    for (int64_t k = t.pieces[piece]; k < end; ++k, b += 16) {
      __m512 columns[4];
#pragma GCC unroll 4
      for (int n = 0; n < 4; ++n) columns[n] = _mm512_loadu_ps(b + n * t.column_block);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const __m512 number = _mm512_set1_ps(a[r][k]);
#pragma GCC unroll 4
        for (int n = 0; n < 4; ++n) sums[r][n] = _mm512_fmadd_ps(number, columns[n], sums[r][n]);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) _mm512_storeu_ps(to + r * kPositionColumns + n * 16, sums[r][n]);
}

void multiply(const PositionTile& t) {
  int64_t row = 0;
  for (; row + 6 <= t.row_count; row += 6) multiply_rows<6>(t, row);
  for (; row + 3 <= t.row_count; row += 3) multiply_rows<3>(t, row);
  for (; row < t.row_count; ++row) multiply_rows<1>(t, row);
}

/// Maxima and minima give their second operand where one is a NaN, which thus stays.
WEFT_AVX512_TARGET void finish(const PositionEnd& end) {
  const __m512 most = _mm512_set1_ps(end.most), zero = _mm512_setzero_ps();
  for (int64_t n = 0; n < 4; ++n) {
    __m512 sum = _mm512_add_ps(_mm512_loadu_ps(end.sums + n * 16), _mm512_loadu_ps(end.bias + n * 16));
    if (end.residual != nullptr) sum = _mm512_add_ps(sum, _mm512_loadu_ps(end.residual + n * end.block));
    if (end.rectifies) sum = _mm512_maskz_min_ps(kAllLanes, most, _mm512_maskz_max_ps(kAllLanes, zero, sum));
    _mm512_storeu_ps(end.to + n * end.block, sum);
  }
}

constexpr PositionLoops kLoops{multiply, finish};

}  // namespace

const PositionLoops* position_loops() { return &kLoops; }

}  // namespace weft::native

#else

namespace weft::native {

const PositionLoops* position_loops() { return nullptr; }

}  // namespace weft::native

#endif
