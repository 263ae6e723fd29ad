#include "weft/cpu/native/convolution/bf16_weight_gradient_loops.h"

#if defined(__x86_64__)

#include <algorithm>

#include "weft/cpu/native/support/bf16_pairs.h"

namespace weft::native {

namespace {

WEFT_BF16_TARGET void pack(const PackedRow& row) {
  const auto* columns = reinterpret_cast<const __m256i*>(row.plane_row);
  const auto column = [&](int64_t at) WEFT_BF16_TARGET {
    return columns != nullptr && at >= 0 && at < row.columns ? _mm256_loadu_si256(columns + at)
                                                             : _mm256_setzero_si256();
  };
  for (int64_t pair = 0; pair < row.pairs; ++pair) {
    const int64_t at = row.first + pair * row.step;
    const __m256i second = pair < row.second_count ? column(at + row.distance) : _mm256_setzero_si256();
    _mm512_storeu_si512(row.packed + pair * kChannelBlock, pair_of(column(at), second));
  }
}

template <int64_t kBlocks>
WEFT_BF16_TARGET void multiply_blocks(const WeightTile& t) {
  __m512 sums[kTileChannels][kBlocks];
#pragma GCC unroll 8
  for (int64_t c = 0; c < kTileChannels; ++c)
#pragma GCC unroll 2
    for (int64_t b = 0; b < kBlocks; ++b)
      sums[c][b] =
          t.is_first ? _mm512_setzero_ps() : _mm512_loadu_ps(t.sums + t.channel_offsets[c] + b * t.block_offset);
  for (int64_t n = 0; n < t.images; ++n) {
    const uint32_t* gradient = t.gradient + n * t.gradient_image;
    const uint32_t* image_row = t.image + n * t.image_image;
    for (int64_t y = 0; y < t.rows; ++y, image_row += t.image_row) {
      const uint32_t* image = image_row;
      for (int64_t x = 0; x < t.pairs; ++x, image += t.image_pair, gradient += kChannelBlock) {
        __m512i g[kBlocks];
#pragma GCC unroll 2
        for (int64_t b = 0; b < kBlocks; ++b) g[b] = _mm512_loadu_si512(gradient + b * t.gradient_block);
#pragma GCC unroll 8
        for (int64_t c = 0; c < kTileChannels; ++c) {
          const __m512i i = _mm512_set1_epi32(static_cast<int>(image[c]));
#pragma GCC unroll 2
          for (int64_t b = 0; b < kBlocks; ++b)
            sums[c][b] = _mm512_dpbf16_ps(sums[c][b], reinterpret_cast<__m512bh>(g[b]), reinterpret_cast<__m512bh>(i));
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t c = 0; c < kTileChannels; ++c)
#pragma GCC unroll 2
    for (int64_t b = 0; b < kBlocks; ++b)
      _mm512_storeu_ps(t.sums + t.channel_offsets[c] + b * t.block_offset, sums[c][b]);
}

void multiply(const WeightTile& tile) { tile.blocks == 2 ? multiply_blocks<2>(tile) : multiply_blocks<1>(tile); }

}  // namespace

const Bf16Loops* bf16_loops() {
  static constexpr Bf16Loops loops{pack, multiply};
  return __builtin_cpu_supports("avx512bf16") ? &loops : nullptr;
}

}  // namespace weft::native

#else

namespace weft::native {

const Bf16Loops* bf16_loops() { return nullptr; }

}  // namespace weft::native

#endif
