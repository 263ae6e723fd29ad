// What becomes of a row of sums, channel beside channel: i32, reals, or integers of 8 bits by
// weft/ops/integer/requantization.h. And the other loops over rows of bytes, compiled per instruction set.
#pragma once

#include <cstdint>

#include "weft/base/isa.h"
#include "weft/ops/integer/requantization.h"
#include "weft/tensor/dtype.h"

namespace weft::native {

/// Of i8 or u8.
inline int32_t byte_of(DType dtype, const void* data, int64_t index) {
  return dtype == DType::i8 ? static_cast<const int8_t*>(data)[index] : static_cast<const uint8_t*>(data)[index];
}

/// Sums of a row: sums[c] + added[c] - zeros[c] * row_sum, in integers that wrap around.
struct RowSums {
  const int32_t* sums;
  const int32_t* added;  // null: nothing
  const int32_t* zeros;  // null: all 0
  int32_t row_sum;
  int64_t count;
  // Where there are more rows, with no zeros: how far apart their sums lie, and their results, in elements.
  int64_t rows = 1, sums_row = 0, result_row = 0;
};

/// Of each channel; which of the arrays are read depends on the kind.
struct ChannelFactors {
  const float* factors;
  const int32_t* multipliers;
  const int32_t* shifts;
  int32_t zero_point;
  ops::IntegerRange range;
};

/// Reals to integers of 8 bits: one scale for `count` numbers side by side, or, with `per_channel`, one for each.
struct QuantizeRun {
  const float *x, *scales;
  const int32_t* zero_points;
  bool per_channel;
  ops::IntegerRange range;
  int64_t count;
};
struct DequantizeRun {
  const float* scales;
  const int32_t* zero_points;
  bool per_channel;
  int64_t count;
};
/// quantize(dequantize(a) + dequantize(b))
struct AddRun {
  float a_scale, b_scale, scale;
  int32_t a_zero, b_zero, zero_point;
  ops::IntegerRange range;
  int64_t count;
};

/// q factor + shift: one factor and shift for `count` numbers side by side, or, with `per_channel`, one for each.
struct AffineRun {
  const float *factors, *shifts;
  bool per_channel;
  int32_t zero_point;
  ops::IntegerRange range;
  int64_t count;
};

/// Taps of one position of a depthwise convolution, two at a time.
struct DepthwisePosition {
  const void* const* taps;  // 2 * pairs: where each tap reads the first channel
  const int16_t* weights;   // [pairs][channels][2], less their zero points
  int64_t pairs, channels;
  int32_t* sums;  // of each channel, not less the image's zero point
};

/// Of one type of 8 bits.
struct ByteLoops {
  // Of all rows.
  void (*requantize_real)(const RowSums&, const ChannelFactors&, void* to);
  void (*requantize_fixed)(const RowSums&, const ChannelFactors&, void* to);
  void (*quantize)(const QuantizeRun&, void* to);
  void (*dequantize)(const DequantizeRun&, const void* from, float* to);
  void (*depthwise)(const DepthwisePosition&);
  void (*maximum)(void* to, const void* from, int64_t count);  // of both, number by number
};

struct RowLoops {
  /// Of one row.
  void (*store_sums)(const RowSums&, int32_t* to);
  void (*store_reals)(const RowSums&, const float* factors, const float* bias, float* to);  // bias null: none
  void (*flip)(const uint8_t* from, uint8_t* to, int64_t count);                            // 128 more, of i8
  int32_t (*sum)(const uint8_t* from, int64_t count);
  ByteLoops of_i8, of_u8;
  /// [a is u8][b is u8][result is u8]
  void (*add[2][2][2])(const AddRun&, const void* a, const void* b, void* to);
  /// [they are u8], of one type
  void (*affine[2])(const AffineRun&, const void* from, void* to);
};

const RowLoops& row_loops_for(Isa isa);

}  // namespace weft::native
