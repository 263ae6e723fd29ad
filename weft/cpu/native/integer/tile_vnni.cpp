#include "weft/cpu/native/integer/tile.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#define WEFT_VNNI_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

namespace weft::native {

namespace {

template <int kRows, int kBlocks>
WEFT_VNNI_TARGET void multiply_rows(const IntegerTile& t, int64_t row) {
  const uint8_t* a[kRows];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) a[r] = t.a + (row + r) * t.a_row;
  __m512i sums[kRows][kBlocks];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int n = 0; n < kBlocks; ++n) sums[r][n] = _mm512_setzero_si512();
  const __m512i flip = t.flips_b ? _mm512_set1_epi8(static_cast<char>(0x80)) : _mm512_setzero_si512();
  const uint8_t* b = t.b;
  for (int64_t group = 0; group < t.groups; ++group, b += kGroupBytes) {
    __m512i columns[kBlocks];
#pragma GCC unroll 4
    for (int n = 0; n < kBlocks; ++n) columns[n] = _mm512_xor_si512(_mm512_loadu_si512(b + n * t.b_block), flip);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      int32_t four = 0;
      std::memcpy(&four, a[r] + group * kInnerGroup, sizeof four);
      const __m512i row_numbers = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int n = 0; n < kBlocks; ++n) sums[r][n] = _mm512_dpbusd_epi32(sums[r][n], row_numbers, columns[n]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int n = 0; n < kBlocks; ++n)
      _mm512_storeu_si512(t.sums + (row + r) * kTileColumns + n * kColumnBlock, sums[r][n]);
}

/// At most 24 registers of sums.
template <int kBlocks>
void multiply_blocks(const IntegerTile& t) {
  int64_t row = 0;
  if constexpr (kBlocks <= 2)
    for (; row + 12 <= t.rows; row += 12) multiply_rows<12, kBlocks>(t, row);
  for (; row + 6 <= t.rows; row += 6) multiply_rows<6, kBlocks>(t, row);
  for (; row + 4 <= t.rows; row += 4) multiply_rows<4, kBlocks>(t, row);
  for (; row + 2 <= t.rows; row += 2) multiply_rows<2, kBlocks>(t, row);
  for (; row < t.rows; ++row) multiply_rows<1, kBlocks>(t, row);
}

void multiply(const IntegerTile& t) {
  switch (t.blocks) {
    case 1:
      return multiply_blocks<1>(t);
    case 2:
      return multiply_blocks<2>(t);
    case 3:
      return multiply_blocks<3>(t);
    default:
      return multiply_blocks<4>(t);
  }
}

}  // namespace

MultiplyTile vnni_multiply_tile() { return __builtin_cpu_supports("avx512vnni") ? multiply : nullptr; }

}  // namespace weft::native

#else

namespace weft::native {

MultiplyTile vnni_multiply_tile() { return nullptr; }

}  // namespace weft::native

#endif
