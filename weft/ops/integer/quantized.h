// What the ops on quantized numbers share: their operands of 8 bits, factors per channel, and attributes.
#pragma once

#include <optional>
#include <vector>

#include "weft/ops/define.h"
#include "weft/ops/integer/requantization.h"

namespace weft::ops {

inline bool is_byte(DType dtype) { return dtype == DType::i8 || dtype == DType::u8; }

/// The operand's type, which is i8 or u8.
DType require_byte(const InferContext& context, int input);
/// One number for all, or one for each of so many channels.
void require_factor(const InferContext& context, int input, int64_t channels);
/// One number.
void require_one(const InferContext& context, int input);

/// rounding, multiplier_bits, low and high.
std::vector<AttributeSpec> requantize_attributes();
/// Error(shape) where they make no sense for the result's type.
void require_requantization(const InferContext& context, DType result);

/// What the attributes say of a result of this type.
struct Requantization {
  RequantizeRounding rounding = RequantizeRounding::real;
  int multiplier_bits = 24;
  IntegerRange range;
};
Requantization requantization_of(const Attributes& attributes, DType result);
/// low and high alone.
IntegerRange range_of(const Attributes& attributes, DType result);

/// A convolution of integers: rows and columns of padding before and behind, filled with the zero point.
struct IntegerWindow {
  std::vector<int64_t> stride, dilation;  // height, width
  std::vector<int64_t> padding;           // above, left, below, right
  int64_t groups = 1;
};
IntegerWindow integer_window(const Attributes& attributes);

/// Ranges for examples: all numbers of an integer type.
inline OpExample::Range all_of(DType dtype) {
  const double count = static_cast<double>(int64_t{1} << bits_of(dtype));
  return is_signed(dtype) ? OpExample::Range{-count / 2, count / 2} : OpExample::Range{0, count};
}

}  // namespace weft::ops
