// Elements of any dtype, read bit by bit and rounded by the definition: what kernels and conversions are compared with.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "weft/base/rng.h"
#include "weft/tensor/tensor.h"

namespace weft::any_dtype {

__extension__ using Whole = __int128;

/// The element's bits: element i takes the bits [i * width, (i + 1) * width) of memory, the lowest first.
inline uint64_t bits_at(const Tensor& tensor, int64_t index) {
  const int width = bits_of(tensor.dtype());
  const auto* bytes = static_cast<const uint8_t*>(tensor.data());
  uint64_t bits = 0;
  for (int bit = 0; bit < width; ++bit) {
    const int64_t place = index * width + bit;
    bits |= static_cast<uint64_t>((bytes[place / 8] >> (place % 8)) & 1) << bit;
  }
  return bits;
}
inline void set_bits(Tensor& tensor, int64_t index, uint64_t bits) {
  const int width = bits_of(tensor.dtype());
  auto* bytes = static_cast<uint8_t*>(tensor.data());
  for (int bit = 0; bit < width; ++bit) {
    const int64_t place = index * width + bit;
    const auto mask = static_cast<uint8_t>(1 << (place % 8));
    bytes[place / 8] = static_cast<uint8_t>((bits >> bit) & 1 ? bytes[place / 8] | mask : bytes[place / 8] & ~mask);
  }
}

struct Format {
  int exponent_bits, fraction_bits;
};
inline Format format_of(DType dtype) {
  return dtype == DType::f64    ? Format{11, 52}
         : dtype == DType::f32  ? Format{8, 23}
         : dtype == DType::bf16 ? Format{8, 7}
                                : Format{5, 10};
}

/// Of a floating type, by IEEE 754's definition.
inline long double real_at(const Tensor& tensor, int64_t index) {
  const auto [exponent_bits, fraction_bits] = format_of(tensor.dtype());
  const uint64_t bits = bits_at(tensor, index);
  const auto exponent = static_cast<int>((bits >> fraction_bits) & ((uint64_t{1} << exponent_bits) - 1));
  const uint64_t fraction = bits & ((uint64_t{1} << fraction_bits) - 1);
  const bool negative = (bits >> (exponent_bits + fraction_bits)) & 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  long double value = 0;
  if (exponent == (1 << exponent_bits) - 1)
    value =
        fraction != 0 ? std::numeric_limits<long double>::quiet_NaN() : std::numeric_limits<long double>::infinity();
  else if (exponent == 0)
    value = std::ldexp(static_cast<long double>(fraction), 1 - bias - fraction_bits);
  else
    value = std::ldexp(static_cast<long double>(fraction | (uint64_t{1} << fraction_bits)),
                       exponent - bias - fraction_bits);
  return negative ? -value : value;
}

/// Of an integer or a boolean.
inline Whole whole_at(const Tensor& tensor, int64_t index) {
  const int width = bits_of(tensor.dtype());
  const uint64_t bits = bits_at(tensor, index);
  if (tensor.dtype() == DType::boolean) return bits != 0;
  const bool negative = is_signed(tensor.dtype()) && ((bits >> (width - 1)) & 1);
  return negative ? static_cast<Whole>(bits) - (Whole{1} << width) : static_cast<Whole>(bits);
}

/// Rounded to nearest even in the floating type; exact in long double, whose mantissa has 64 bits.
inline long double rounded(DType dtype, long double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const auto [exponent_bits, fraction_bits] = format_of(dtype);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = std::max(static_cast<int>(std::ilogb(value)), 1 - bias);
  const long double unit = std::ldexp(1.0L, exponent - fraction_bits);
  const long double result = std::nearbyint(value / unit) * unit;
  const long double largest = std::ldexp(2.0L - std::ldexp(1.0L, -fraction_bits), bias);
  if (std::fabs(result) <= largest) return result;
  return std::copysign(std::numeric_limits<long double>::infinity(), result);
}

inline Whole lowest(DType dtype) { return is_signed(dtype) ? -(Whole{1} << (bits_of(dtype) - 1)) : Whole{0}; }
inline Whole highest(DType dtype) { return (Whole{1} << (bits_of(dtype) - (is_signed(dtype) ? 1 : 0))) - 1; }
/// The number of the dtype with the same lowest bits.
inline Whole wrapped(DType dtype, Whole value) {
  const Whole modulus = Whole{1} << bits_of(dtype);
  Whole rest = value % modulus;
  if (rest < 0) rest += modulus;
  return rest > highest(dtype) ? rest - modulus : rest;
}

/// Random bits, and the numbers near the ends and around 0 first. Booleans are 0 or 1.
inline Tensor draw_bits(const TensorType& type, uint64_t key) {
  Tensor tensor(type);
  RandomStream stream(key);
  const int width = bits_of(type.dtype);
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  const uint64_t sign = uint64_t{1} << (width - 1);
  const std::vector<uint64_t> special{0, 1, mask, sign, sign - 1, 2, sign | 1};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    uint64_t bits =
        (uint64_t{stream.below(1u << 31)} << 40) ^ (uint64_t{stream.below(1u << 31)} << 20) ^ stream.below(1u << 31);
    if (stream.below(3) == 0) bits = special[stream.below(static_cast<uint32_t>(special.size()))];
    if (stream.below(4) == 0) bits = stream.below(8);
    set_bits(tensor, i, type.dtype == DType::boolean ? bits & 1 : bits & mask);
  }
  return tensor;
}

/// Whether the bits behind the last element are 0.
inline bool ends_in_zeros(const Tensor& tensor) {
  const int64_t used = tensor.elements() * bits_of(tensor.dtype());
  if (used % 8 == 0) return true;
  return (static_cast<const uint8_t*>(tensor.data())[used / 8] >> (used % 8)) == 0;
}

}  // namespace weft::any_dtype
