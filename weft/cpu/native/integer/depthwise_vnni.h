// Depthwise convolutions of integers by vpdpbusd, 64 channels at a time: four rows of a column of the image become
// groups of four bytes of one channel, once for all windows that see the column.
//
// Packing and unpacking bytes goes quarter by quarter of a register. So the four vectors of sums hold channels in the
// order in which unpacking leaves them, and packing the results puts them right again. Weights, and what stands beside
// them, are laid out in that order.
#pragma once

#include <cstdint>

#include "weft/ops/integer/requantization.h"

namespace weft::native {

constexpr int64_t kDepthwiseChannels = 64;
constexpr int64_t kDepthwiseRows = 4;                                     // of a group
constexpr int64_t kDepthwiseGroup = kDepthwiseChannels * kDepthwiseRows;  // bytes
constexpr int64_t kDepthwiseResults = 32;                                 // at most, of one call

/// Where a channel of a block, 0 to 63, stands in the four vectors.
constexpr int64_t depthwise_place(int64_t channel) {
  const int64_t quarter = channel / 16, vector = channel % 16 / 4;
  return vector * 16 + quarter * 4 + channel % 4;
}

/// Results of one line for up to 64 channels, of the kind `real`.
struct DepthwiseTile {
  // [row_groups * kDepthwiseRows]: the block's first channel in column 0 of each row that the kernel sees, and the
  // bytes from one column to the next. What fills up the last group has weights of 0.
  const uint8_t* const* rows;
  const int64_t* row_steps;
  int64_t width;           // of the rows, in columns
  const uint8_t* outside;  // the block's channels beyond
  uint8_t flip;            // 0x80 for images of i8
  int64_t channels;        // 1 to 64
  int64_t row_groups, kernel_columns, stride, dilation;
  int64_t first_column;    // that the first result sees; may be negative
  const uint8_t* weights;  // [kernel_columns][row_groups][kDepthwiseGroup]
  const int32_t* added;    // [64], what the sums begin with
  const float* factors;    // [64]
  int32_t zero_point;
  ops::IntegerRange range;
  bool is_signed;    // the result is i8, else u8
  uint8_t* columns;  // memory for depthwise_columns() * row_groups * kDepthwiseGroup bytes
  int64_t results;   // 1 to kDepthwiseResults
  uint8_t* to;       // result x begins at to + x * to_step
  int64_t to_step;
};

/// Of the image, that so many results see.
constexpr int64_t depthwise_columns(int64_t results, int64_t kernel_columns, int64_t stride, int64_t dilation) {
  return (results - 1) * stride + (kernel_columns - 1) * dilation + 1;
}

using RunDepthwiseTile = void (*)(const DepthwiseTile&);
/// Null where this processor has no such instruction.
RunDepthwiseTile vnni_depthwise_tile();

}  // namespace weft::native
