// product_sgd_update of rows in bf16 with AVX512_BF16: as product_update_loops.h, with two terms in each step.
#include "weft/cpu/native/update/product_update_panel.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>

#include "weft/cpu/native/support/bf16_pairs.h"

namespace weft::native {

namespace {

constexpr int64_t kVectors = 4, kColumns = 16 * kVectors;

struct Tile {
  const uint32_t *left, *right;
  int64_t pairs, rows, columns;
  int64_t place, stride;  // of the states' elements
};

/// The lanes of a tile's vector that are columns of the matrix.
WEFT_BF16_TARGET inline __mmask16 lanes_of(int64_t columns, int64_t vector) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(columns - 16 * vector, 0, 16)) - 1u);
}

/// Tile by tile the panel's columns as pairs of terms, zeros beyond the last column and term.
WEFT_BF16_TARGET void pack_panel(const PanelUpdate<Bf16>& p, int64_t pairs, uint32_t* to) {
  for (int64_t column = p.first_column; column < p.last_column; column += kColumns)
    for (int64_t pair = 0; pair < pairs; ++pair)
      for (int64_t v = 0; v < kVectors; ++v, to += 16) {
        const __mmask16 lanes = lanes_of(p.last_column - column, v);
        const Bf16* const first = p.right + 2 * pair * p.columns + column + 16 * v;
        const __mmask16 second = 2 * pair + 1 < p.terms ? lanes : __mmask16{0};
        _mm512_storeu_si512(
            to, pair_of(_mm256_maskz_loadu_epi16(lanes, first), _mm256_maskz_loadu_epi16(second, first + p.columns)));
      }
}

void pack_block(const PanelUpdate<Bf16>& p, int64_t pairs, int64_t first, int64_t count, uint32_t* to) {
  const auto number = [&](int64_t term, int64_t row) {
    return row < count && term < p.terms ? uint32_t{p.left[term * p.rows + first + row].bits} : 0u;
  };
  for (int64_t pair = 0; pair < pairs; ++pair)
    for (int64_t row = 0; row < kTileRows; ++row) *to++ = number(2 * pair, row) | number(2 * pair + 1, row) << 16;
}

WEFT_BF16_TARGET void update_tile(const PanelUpdate<Bf16>& p, const Tile& tile) {
  __m512 sums[kTileRows][kVectors];
#pragma GCC unroll 6
  for (int64_t r = 0; r < kTileRows; ++r)
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  const uint32_t *left = tile.left, *right = tile.right;
  for (int64_t pair = 0; pair < tile.pairs; ++pair, left += kTileRows, right += kColumns) {
    __m512i factors[kVectors];
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) factors[v] = _mm512_loadu_si512(right + 16 * v);
#pragma GCC unroll 6
    for (int64_t r = 0; r < kTileRows; ++r) {
      const __m512i row = _mm512_set1_epi32(static_cast<int>(left[r]));
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v)
        sums[r][v] =
            _mm512_dpbf16_ps(sums[r][v], reinterpret_cast<__m512bh>(factors[v]), reinterpret_cast<__m512bh>(row));
    }
  }
  const __m512 rate = _mm512_set1_ps(p.learning_rate), momentum = _mm512_set1_ps(p.momentum),
               decay = _mm512_set1_ps(p.weight_decay);
#pragma GCC unroll 6
  for (int64_t r = 0; r < kTileRows; ++r) {
    if (r >= tile.rows) break;
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      const __mmask16 lanes = lanes_of(tile.columns, v);
      const int64_t place = tile.place + r * tile.stride + 16 * v;
      const __m512 old = _mm512_maskz_loadu_ps(lanes, p.parameter + place);
      const __m512 gradient = _mm512_fmadd_ps(decay, old, sums[r][v]);
      const __m512 moved = _mm512_fmadd_ps(momentum, _mm512_maskz_loadu_ps(lanes, p.velocity + place), gradient);
      const __m512 direction = p.nesterov ? _mm512_fmadd_ps(momentum, moved, gradient) : moved;
      _mm512_mask_storeu_ps(p.next_velocity + place, lanes, moved);
      _mm512_mask_storeu_ps(p.next_parameter + place, lanes, _mm512_fnmadd_ps(rate, direction, old));
    }
  }
}

void update_panel(const PanelUpdate<Bf16>& p) {
  const int64_t pairs = (p.terms + 1) / 2;
  auto* const panel = reinterpret_cast<uint32_t*>(p.panel);
  auto* const left = reinterpret_cast<uint32_t*>(p.block);
  pack_panel(p, pairs, panel);
  for (int64_t block = p.first_block; block < p.last_block; ++block) {
    const int64_t row = block * kTileRows, rows = std::min(kTileRows, p.rows - row);
    pack_block(p, pairs, row, rows, left);
    for (int64_t column = p.first_column; column < p.last_column; column += kColumns)
      update_tile(p, {left, panel + (column - p.first_column) * pairs, pairs, rows,
                      std::min(kColumns, p.last_column - column), row * p.columns + column, p.columns});
  }
}

}  // namespace

void (*product_update_by_pairs())(const PanelUpdate<Bf16>&) {
  return __builtin_cpu_supports("avx512bf16") ? update_panel : nullptr;
}

}  // namespace weft::native

#else

namespace weft::native {

void (*product_update_by_pairs())(const PanelUpdate<Bf16>&) { return nullptr; }

}  // namespace weft::native

#endif
