// What integers mean in quantized networks: one definition, which every kernel gives the bits of.
//
// An integer q of 8 bits stands for the real (q - zero point) scale (Jacob et al. 2018, "Quantization and training of
// neural networks for efficient integer-arithmetic-only inference", equation 1).
//
//   products      sums over k of (a_k - a's zero point) (b_k - b's zero point) in i32, which wraps around: no order of
//                 the terms changes a bit
//   quantize      clamp(round(x / scale) + zero point), half to even, as ONNX's QuantizeLinear
//   dequantize    (q - zero point) scale, one rounding to f32, as ONNX's DequantizeLinear
//   affine        clamp(round(q factor + shift) + zero point), half to even, factor and shift of each channel: what a
//                 normalisation of integers means, where all of its numbers are known
//   requantize    from a sum of i32 to 8 bits, by a factor that joins three scales (a's b's / the result's):
//     float       clamp(round(f32(sum) factor) + zero point), half to even: what ONNX's QLinearConv and QDQ mean
//     fixed       clamp(floor(sum multiplier / 2^shift + 1/2) + zero point) in i64, where multiplier / 2^shift is the
//                 factor with so many bits: integers alone, for C and for hardware
//
// A factor of f32 has 24 bits: with 24 or more the fixed kind multiplies by exactly the factor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace weft::ops {

enum class RequantizeRounding { real, fixed };  // "float" and "fixed" in graphs

inline constexpr int kMostMultiplierBits = 31;

/// multiplier / 2^shift, |multiplier| < 2^31, shift from 0 to 63.
struct FixedFactor {
  int64_t multiplier = 0;
  int shift = 0;
};

/// The factor with `bits` bits (2 to 31), half to even. 0 for NaN; at most 2^31 - 1.
inline FixedFactor fixed_factor(float factor, int bits) {
  constexpr int64_t kMost = (int64_t{1} << kMostMultiplierBits) - 1;
  if (std::isnan(factor) || factor == 0) return {};
  if (std::isinf(factor)) return {factor > 0 ? kMost : -kMost, 0};
  int exponent = 0;
  const double mantissa = std::frexp(static_cast<double>(factor), &exponent);  // 1/2 to 1
  auto multiplier = static_cast<int64_t>(std::nearbyint(std::ldexp(mantissa, bits)));
  int shift = bits - exponent;
  if (multiplier == int64_t{1} << bits || -multiplier == int64_t{1} << bits) {
    multiplier /= 2;
    --shift;
  }
  // A sum has 32 bits: what is shifted further is 0 after rounding.
  if (shift > 63) return {0, 0};
  while (shift < 0 && std::abs(multiplier) <= kMost / 2) {
    multiplier *= 2;
    ++shift;
  }
  if (shift < 0) return {multiplier > 0 ? kMost : -kMost, 0};
  return {multiplier, shift};
}

/// floor(sum multiplier / 2^shift + 1/2)
inline int64_t multiply_fixed(int32_t sum, const FixedFactor& factor) {
  const int64_t product = int64_t{sum} * factor.multiplier;  // below 2^62
  return factor.shift == 0 ? product : (product + (int64_t{1} << (factor.shift - 1))) >> factor.shift;
}

/// The integers that a result may be, low <= high; both belong to its type.
struct IntegerRange {
  int32_t low = -128, high = 127;
};

/// Steps from the zero point, half to even, within the range. A NaN becomes the lowest.
inline int32_t round_steps(float steps, int32_t zero_point, const IntegerRange& range) {
  const auto low = static_cast<float>(range.low - zero_point), high = static_cast<float>(range.high - zero_point);
  const float above = steps > low ? steps : low;
  const float within = above < high ? above : high;
  return static_cast<int32_t>(std::nearbyint(within)) + zero_point;
}

inline int32_t quantize(float x, float scale, int32_t zero_point, const IntegerRange& range) {
  return round_steps(x / scale, zero_point, range);
}

inline float dequantize(int32_t q, float scale, int32_t zero_point) {
  return static_cast<float>(q - zero_point) * scale;
}

inline int32_t affine(int32_t q, float factor, float shift, int32_t zero_point, const IntegerRange& range) {
  const float scaled = static_cast<float>(q) * factor;
  return round_steps(scaled + shift, zero_point, range);
}

inline int32_t requantize_real(int32_t sum, float factor, int32_t zero_point, const IntegerRange& range) {
  return round_steps(static_cast<float>(sum) * factor, zero_point, range);
}

inline int32_t requantize_fixed(int32_t sum, const FixedFactor& factor, int32_t zero_point, const IntegerRange& range) {
  const int64_t value = multiply_fixed(sum, factor) + zero_point;
  return static_cast<int32_t>(std::clamp<int64_t>(value, range.low, range.high));
}

/// As integers of 32 bits, which wrap around.
inline int32_t add_wrapping(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

}  // namespace weft::ops
