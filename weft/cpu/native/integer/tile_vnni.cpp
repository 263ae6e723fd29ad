#include "weft/cpu/native/integer/tile.h"

#if defined(__x86_64__)

#include <cstring>

#include "weft/cpu/native/integer/vnni_end.h"

namespace weft::native {

namespace {

/// Packing leaves four columns of each block in each quarter.
WEFT_VNNI_TARGET inline __m512i column_order() {
  return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

/// Up to 64 columns of one row.
template <int kBlocks>
WEFT_VNNI_TARGET inline __attribute__((always_inline)) void end_row(const __m512i (&sums)[kBlocks], const TileEnd& tile,
                                                                    const VnniEnd& end, uint8_t* to) {
  __m512i steps[4];
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) {
    steps[n] = _mm512_setzero_si512();
    if (n >= kBlocks) continue;
    const __m512i sum = _mm512_add_epi32(sums[n < kBlocks ? n : 0], _mm512_loadu_si512(tile.added + n * kColumnBlock));
    steps[n] = whole_steps(sum, tile.factors + n * kColumnBlock);
  }
  const __m512i bytes = pack_steps(steps, end);
  _mm512_mask_storeu_epi8(to, end.bytes, _mm512_maskz_permutexvar_epi32(kAllLanes, column_order(), bytes));
}

template <int kRows, int kBlocks, bool kFlips>
WEFT_VNNI_TARGET inline __attribute__((always_inline)) void add_products(const IntegerTile& t,
                                                                         const uint8_t* const (&starts)[kRows],
                                                                         __m512i (&sums)[kRows][kBlocks]) {
  const uint8_t* b = t.b;
  for (int64_t piece = 0; piece < t.piece_count; ++piece) {
    const uint8_t* a[kRows];
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) a[r] = starts[r] + (t.pieces == nullptr ? 0 : t.pieces[piece]);
    for (int64_t at = 0; at < t.groups * kInnerGroup; at += kInnerGroup, b += kGroupBytes) {
      __m512i columns[kBlocks];
#pragma GCC unroll 4
      for (int n = 0; n < kBlocks; ++n) {
        columns[n] = _mm512_loadu_si512(b + n * t.b_block);
        if (kFlips) columns[n] = _mm512_xor_si512(columns[n], _mm512_set1_epi8(static_cast<char>(0x80)));
      }
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        int32_t four = 0;
        std::memcpy(&four, a[r] + at, sizeof four);
        const __m512i row_numbers = _mm512_set1_epi32(four);
#pragma GCC unroll 4
        for (int n = 0; n < kBlocks; ++n) sums[r][n] = _mm512_dpbusd_epi32(sums[r][n], row_numbers, columns[n]);
      }
    }
  }
}

/// Into t.sums, or with an end to where that says.
template <int kRows, int kBlocks, bool kEnds>
WEFT_VNNI_TARGET void multiply_rows(const IntegerTile& t, int64_t row, const TileEnd* tile_end) {
  const uint8_t* a[kRows];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) a[r] = t.row_starts == nullptr ? t.a + (row + r) * t.a_row : t.row_starts[row + r];
  __m512i sums[kRows][kBlocks];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int n = 0; n < kBlocks; ++n) sums[r][n] = _mm512_setzero_si512();
  t.flips_b ? add_products<kRows, kBlocks, true>(t, a, sums) : add_products<kRows, kBlocks, false>(t, a, sums);
  if constexpr (kEnds) {
    const VnniEnd end = vnni_end(tile_end->zero_point, tile_end->range, tile_end->is_signed, tile_end->columns);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r)
      end_row<kBlocks>(sums[r], *tile_end, end, tile_end->to + (row + r) * tile_end->to_row);
  } else {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int n = 0; n < kBlocks; ++n)
        _mm512_storeu_si512(t.sums + (row + r) * kTileColumns + n * kColumnBlock, sums[r][n]);
  }
}

/// At most 24 registers of sums. Sums in memory are rare: they do with fewer forms of the loop.
template <int kBlocks, bool kEnds>
void multiply_blocks(const IntegerTile& t, const TileEnd* end) {
  int64_t row = 0;
  if constexpr (kEnds && kBlocks <= 2)
    for (; row + 12 <= t.rows; row += 12) multiply_rows<12, kBlocks, kEnds>(t, row, end);
  for (; row + 6 <= t.rows; row += 6) multiply_rows<6, kBlocks, kEnds>(t, row, end);
  if constexpr (kEnds)
    for (; row + 2 <= t.rows; row += 2) multiply_rows<2, kBlocks, kEnds>(t, row, end);
  for (; row < t.rows; ++row) multiply_rows<1, kBlocks, kEnds>(t, row, end);
}

template <bool kEnds>
void multiply_with(const IntegerTile& t, const TileEnd* end) {
  switch (t.blocks) {
    case 1:
      return multiply_blocks<1, kEnds>(t, end);
    case 2:
      return multiply_blocks<2, kEnds>(t, end);
    case 3:
      return multiply_blocks<3, kEnds>(t, end);
    default:
      return multiply_blocks<4, kEnds>(t, end);
  }
}

void multiply(const IntegerTile& t) { multiply_with<false>(t, nullptr); }
void finish(const IntegerTile& t, const TileEnd& end) { multiply_with<true>(t, &end); }

}  // namespace

MultiplyTile vnni_multiply_tile() { return __builtin_cpu_supports("avx512vnni") ? multiply : nullptr; }
FinishTile vnni_finish_tile() { return __builtin_cpu_supports("avx512vnni") ? finish : nullptr; }

}  // namespace weft::native

#else

namespace weft::native {

MultiplyTile vnni_multiply_tile() { return nullptr; }
FinishTile vnni_finish_tile() { return nullptr; }

}  // namespace weft::native

#endif
