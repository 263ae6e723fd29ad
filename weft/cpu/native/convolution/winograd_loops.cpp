#include "weft/cpu/native/convolution/winograd_loops.h"

#if defined(WEFT_WINOGRAD)

#include <immintrin.h>

#include <cstring>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#endif

#define WEFT_INLINE inline __attribute__((always_inline))

namespace weft::native::winograd {

namespace {

struct Column {
  __m512 at[4];
};

typedef uint16_t Halves __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(64)));

WEFT_INLINE __m512 load(const float* from) { return _mm512_loadu_ps(from); }
WEFT_INLINE __m512 load(const uint16_t* pixel) {
  Halves bits;
  std::memcpy(&bits, pixel, sizeof bits);
  return reinterpret_cast<__m512>(__builtin_convertvector(bits, Words) << 16);
}
WEFT_INLINE Halves rounded(__m512 x) { return reinterpret_cast<Halves>(_mm512_cvtneps_pbh(x)); }
WEFT_INLINE Words rounded_words(__m512 x) { return __builtin_convertvector(rounded(x), Words); }
WEFT_INLINE void store_rounded(uint16_t* to, __m512 x) {
  const Halves bits = rounded(x);
  std::memcpy(to, &bits, sizeof bits);
}

/// Rows of an image, zeros where it has none.
template <int kCount>
struct Rows {
  alignas(64) uint16_t zeros[kLanes] = {};
  const uint16_t* row[kCount];
  int64_t step[kCount];  // from one column to the next
  WEFT_INLINE Rows(const uint16_t* image, const Strip& strip) {
    for (int i = 0; i < kCount; ++i) {
      const int64_t at = strip.row + i;
      const bool inside = at >= 0 && at < strip.rows;
      row[i] = inside ? image + at * strip.columns * kLanes : zeros;
      step[i] = inside ? kLanes : 0;
    }
  }
  WEFT_INLINE __m512 pixel(int i, int64_t column) const { return load(row[i] + column * step[i]); }
};

/// One dimension of B^T d.
WEFT_INLINE Column input_numbers(__m512 a, __m512 b, __m512 c, __m512 d) { return {{a - c, b + c, c - b, b - d}}; }

WEFT_INLINE Column input_column(const Rows<4>& rows, int64_t column, int64_t columns) {
  if (column < 0 || column >= columns) return {};
  return input_numbers(rows.pixel(0, column), rows.pixel(1, column), rows.pixel(2, column), rows.pixel(3, column));
}

/// Calls write(tile, matrix, numbers) for every number of every tile; neighbours share two columns.
template <typename Write>
WEFT_INLINE void for_input_numbers(const uint16_t* image, const Strip& strip, Write&& write) {
  const Rows<4> rows(image, strip);
  int64_t x = strip.column;
  Column a = input_column(rows, x, strip.columns), b = input_column(rows, x + 1, strip.columns);
  for (int64_t tile = 0; tile < strip.tiles; ++tile, x += 2) {
    const Column c = input_column(rows, x + 2, strip.columns), d = input_column(rows, x + 3, strip.columns);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Column numbers = input_numbers(a.at[i], b.at[i], c.at[i], d.at[i]);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) write(tile, i * 4 + j, numbers.at[j]);
    }
    a = c;
    b = d;
  }
}

/// The second tile of a pair joins the first, which has left zeros for it.
WEFT_INLINE void write_pair(const TilePairs& tiles, int64_t tile, int64_t matrix, __m512 x) {
  uint16_t* to = tiles.data + matrix * tiles.matrix + (tile >> 1) * tiles.pair;
  Words bits = rounded_words(x);
  if (tile & 1) {
    Words first;
    std::memcpy(&first, to, sizeof first);
    bits = bits << 16 | first;
  }
  std::memcpy(to, &bits, sizeof bits);
}

/// One dimension of A y.
WEFT_INLINE Column gradient_numbers(__m512 a, __m512 b) { return {{a, a + b, a - b, -b}}; }

/// One dimension of G g.
WEFT_INLINE Column filter_numbers(__m512 a, __m512 b, __m512 c) {
  constexpr float half = 0.5f;
  const __m512 outer = half * (a + c), inner = half * b;
  return {{a, outer + inner, outer - inner, c}};
}

/// One dimension of G^T s.
struct Taps {
  __m512 at[3];
};
WEFT_INLINE Taps filter_taps(__m512 a, __m512 b, __m512 c, __m512 d) {
  constexpr float half = 0.5f;
  const __m512 sum = half * (b + c), difference = half * (b - c);
  return {{a + sum, difference, sum + d}};
}

WEFT_INLINE __m512bh broadcast_pair(const uint16_t* pair) {
  int bits;
  std::memcpy(&bits, pair, 4);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(bits));
}
WEFT_INLINE __m512bh load_pairs(const uint16_t* pairs) { return reinterpret_cast<__m512bh>(_mm512_loadu_si512(pairs)); }

template <int kTiles, int kBlocks>
WEFT_INLINE void multiply_block(int64_t channels, const uint16_t* tiles, const uint16_t* panel, float* result) {
  __m512 sums[kTiles][kBlocks];
#pragma GCC unroll 12
  for (int t = 0; t < kTiles; ++t)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) sums[t][b] = __m512{};
  for (int64_t c = 0; c < channels; c += 2, panel += kBlocks * kLanes * 2) {
    __m512bh weights[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) weights[b] = load_pairs(panel + b * kLanes * 2);
#pragma GCC unroll 12
    for (int t = 0; t < kTiles; ++t) {
      const __m512bh pair = broadcast_pair(tiles + t * channels + c);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) sums[t][b] = _mm512_dpbf16_ps(sums[t][b], weights[b], pair);
    }
  }
#pragma GCC unroll 12
  for (int t = 0; t < kTiles; ++t)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) _mm512_storeu_ps(result + (t * kBlocks + b) * kLanes, sums[t][b]);
}

template <int kTiles, int kBlocks>
void multiply_blocks(int64_t channels, const uint16_t* tiles, const uint16_t* panel, float* result) {
  for (int64_t t = 0; t < kRows; t += kTiles)
    multiply_block<kTiles, kBlocks>(channels, tiles + t * channels, panel, result + t * kBlocks * kLanes);
}

template <int kInputs, int kBlocks>
void add_product_blocks(int64_t pairs, const uint16_t* inputs, const uint16_t* gradients, float* sums) {
  for (int64_t first = 0; first < kLanes; first += kInputs) {
    __m512 sum[kInputs][kBlocks];
    float* to = sums + first * kBlocks * kLanes;
#pragma GCC unroll 8
    for (int i = 0; i < kInputs; ++i)
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) sum[i][b] = load(to + (i * kBlocks + b) * kLanes);
    // Sums of many channels come from beyond the second-level cache: fetch the next while these are multiplied.
    constexpr int64_t kNext = kInputs * kBlocks * kLanes;
    for (int64_t at = kNext; at < 2 * kNext; at += kLanes) _mm_prefetch(to + at, _MM_HINT_T0);
    const uint16_t *input = inputs + first * 2, *gradient = gradients;
    for (int64_t p = 0; p < pairs; ++p, input += kLanes * 2, gradient += kBlocks * kLanes * 2) {
      __m512bh g[kBlocks];
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) g[b] = load_pairs(gradient + b * kLanes * 2);
#pragma GCC unroll 8
      for (int i = 0; i < kInputs; ++i) {
        const __m512bh pair = broadcast_pair(input + i * 2);
#pragma GCC unroll 4
        for (int b = 0; b < kBlocks; ++b) sum[i][b] = _mm512_dpbf16_ps(sum[i][b], g[b], pair);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kInputs; ++i)
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) _mm512_storeu_ps(to + (i * kBlocks + b) * kLanes, sum[i][b]);
  }
}

}  // namespace

void transform_input(const uint16_t* image, const Strip& strip, const Tiles& tiles) {
  for_input_numbers(
      image, strip, [&](int64_t tile, int64_t matrix, __m512 x) __attribute__((always_inline)) {
        store_rounded(tiles.data + matrix * tiles.matrix + tile * tiles.tile, x);
      });
}

void transform_input_pairs(const uint16_t* image, const Strip& strip, const TilePairs& tiles) {
  for_input_numbers(
      image, strip, [&](int64_t tile, int64_t matrix, __m512 x) __attribute__((always_inline)) {
        write_pair(tiles, tiles.first + tile, matrix, x);
      });
}

void transform_gradient_pairs(const uint16_t* image, const Strip& strip, const TilePairs& tiles, float* sums) {
  const Rows<2> rows(image, strip);
  __m512 total = __m512{};
  for (int64_t tile = 0; tile < strip.tiles; ++tile) {
    const int64_t x = strip.column + tile * 2;
    const bool two = x + 1 < strip.columns;
    const Column left = gradient_numbers(rows.pixel(0, x), rows.pixel(1, x));
    const Column right =
        two ? gradient_numbers(rows.pixel(0, x + 1), rows.pixel(1, x + 1)) : gradient_numbers(__m512{}, __m512{});
    total += left.at[1] + right.at[1];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Column numbers = gradient_numbers(left.at[i], right.at[i]);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) write_pair(tiles, tiles.first + tile, i * 4 + j, numbers.at[j]);
    }
  }
  _mm512_storeu_ps(sums, load(sums) + total);
}

void transform_filters(const uint16_t* taps, uint16_t* result, int64_t matrix) {
  Column columns[2][3];
  for (int x = 0; x < 3; ++x) {
    __m512 first[3], second[3];
    for (int y = 0; y < 3; ++y) {
      Words pairs;
      std::memcpy(&pairs, taps + (y * 3 + x) * kLanes * 2, sizeof pairs);
      first[y] = reinterpret_cast<__m512>(pairs << 16);
      second[y] = reinterpret_cast<__m512>(pairs & 0xffff0000u);
    }
    columns[0][x] = filter_numbers(first[0], first[1], first[2]);
    columns[1][x] = filter_numbers(second[0], second[1], second[2]);
  }
  for (int i = 0; i < 4; ++i) {
    const Column a = filter_numbers(columns[0][0].at[i], columns[0][1].at[i], columns[0][2].at[i]);
    const Column b = filter_numbers(columns[1][0].at[i], columns[1][1].at[i], columns[1][2].at[i]);
    for (int j = 0; j < 4; ++j) {
      const Words pairs = rounded_words(a.at[j]) | rounded_words(b.at[j]) << 16;
      std::memcpy(result + (i * 4 + j) * matrix, &pairs, sizeof pairs);
    }
  }
}

void multiply(int64_t blocks, int64_t channels, const uint16_t* tiles, const uint16_t* panel, float* result) {
  switch (blocks) {
    case 1:
      return multiply_blocks<12, 1>(channels, tiles, panel, result);
    case 2:
      return multiply_blocks<12, 2>(channels, tiles, panel, result);
    case 3:
      return multiply_blocks<6, 3>(channels, tiles, panel, result);
    default:
      return multiply_blocks<6, 4>(channels, tiles, panel, result);
  }
}

void transform_output(const float* products, int64_t matrix, const float* bias, uint16_t* image, const Strip& strip) {
  __m512 top[4], bottom[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512 a = load(products + j * matrix), b = load(products + (4 + j) * matrix);
    const __m512 c = load(products + (8 + j) * matrix), d = load(products + (12 + j) * matrix);
    top[j] = a + (b + c);
    bottom[j] = b - c - d;
  }
  const __m512 constant = load(bias);
  const auto write = [&](const __m512* row, uint16_t* to) __attribute__((always_inline)) {
    const __m512 first = row[0] + (row[1] + row[2]);
    const __m512 second = row[1] - row[2] - row[3];
    store_rounded(to, first + constant);
    if (strip.column + 1 < strip.columns) store_rounded(to + kLanes, second + constant);
  };
  uint16_t* to = image + (strip.row * strip.columns + strip.column) * kLanes;
  write(top, to);
  if (strip.row + 1 < strip.rows) write(bottom, to + strip.columns * kLanes);
}

void add_products(int64_t blocks, int64_t pairs, const uint16_t* inputs, const uint16_t* gradients, float* sums) {
  switch (blocks) {
    case 1:
      return add_product_blocks<8, 1>(pairs, inputs, gradients, sums);
    case 2:
      return add_product_blocks<8, 2>(pairs, inputs, gradients, sums);
    case 3:
      return add_product_blocks<4, 3>(pairs, inputs, gradients, sums);
    default:
      return add_product_blocks<4, 4>(pairs, inputs, gradients, sums);
  }
}

void inverse_filters(const float* sums, int64_t matrix, float* taps) {
  Taps columns[4];
  for (int j = 0; j < 4; ++j)
    columns[j] = filter_taps(load(sums + j * matrix), load(sums + (4 + j) * matrix), load(sums + (8 + j) * matrix),
                             load(sums + (12 + j) * matrix));
  for (int y = 0; y < 3; ++y) {
    const Taps row = filter_taps(columns[0].at[y], columns[1].at[y], columns[2].at[y], columns[3].at[y]);
    for (int x = 0; x < 3; ++x) _mm512_storeu_ps(taps + (y * 3 + x) * kLanes, row.at[x]);
  }
}

}  // namespace weft::native::winograd

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
