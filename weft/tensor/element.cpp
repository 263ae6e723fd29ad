#include "weft/tensor/element.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "weft/tensor/tensor.h"

namespace weft {

namespace {

/// The double as the float from which every narrower type rounds as from the double itself: inexact ones are odd.
float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  float below = nearest;  // towards zero
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) below = std::nextafter(nearest, 0.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(below) | 1u);
}

/// The same of a whole number.
float round_to_odd(uint64_t value) {
  const int excess = std::bit_width(value) - 24;
  if (excess <= 0) return static_cast<float>(value);
  const uint64_t kept = value >> excess, lost = value & ((uint64_t{1} << excess) - 1);
  return std::ldexp(static_cast<float>(kept | (lost != 0 ? 1u : 0u)), excess);
}
float round_to_odd(int64_t value) {
  return value < 0 ? -round_to_odd(uint64_t{0} - static_cast<uint64_t>(value))
                   : round_to_odd(static_cast<uint64_t>(value));
}

/// Truncated and saturated; the limits are those of a type of so many bits.
int64_t to_signed(double value, int bits) {
  if (std::isnan(value)) return 0;
  const double limit = std::ldexp(1.0, bits - 1);  // one above the largest
  const auto highest = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  if (value >= limit) return highest;
  if (value <= -limit) return -highest - 1;
  return static_cast<int64_t>(value);
}
uint64_t to_unsigned(double value, int bits) {
  if (!(value > 0)) return 0;
  if (value >= std::ldexp(1.0, bits)) return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return static_cast<uint64_t>(value);
}

/// The bits of an element of fewer than 8, and those of its byte that are others'.
struct PackedPlace {
  int64_t byte;
  int shift;
  uint8_t mask;
};
PackedPlace place_of(int bits, int64_t index) {
  const int per_byte = 8 / bits;
  return {index / per_byte, static_cast<int>(index % per_byte) * bits, static_cast<uint8_t>((1 << bits) - 1)};
}

uint8_t load_packed(int bits, const void* data, int64_t index) {
  const PackedPlace place = place_of(bits, index);
  return static_cast<uint8_t>((static_cast<const uint8_t*>(data)[place.byte] >> place.shift) & place.mask);
}
int64_t load_packed_signed(int bits, const void* data, int64_t index) {
  const int value = load_packed(bits, data, index);
  return value >= 1 << (bits - 1) ? value - (1 << bits) : value;
}
void store_packed(int bits, void* data, int64_t index, uint64_t value) {
  const PackedPlace place = place_of(bits, index);
  uint8_t& byte = static_cast<uint8_t*>(data)[place.byte];
  const auto others = static_cast<uint8_t>(byte & ~(place.mask << place.shift));
  byte = static_cast<uint8_t>(others | ((value & place.mask) << place.shift));
}

template <typename T>
T at(const void* data, int64_t index) {
  return static_cast<const T*>(data)[index];
}

/// Calls take(number) with the element in the type of its dtype's numbers.
template <typename Take>
auto load(DType dtype, const void* data, int64_t index, Take&& take) {
  switch (dtype) {
    case DType::f32:
      return take(static_cast<double>(at<float>(data, index)));
    case DType::f64:
      return take(at<double>(data, index));
    case DType::bf16:
      return take(static_cast<double>(bf16_to_f32(at<uint16_t>(data, index))));
    case DType::f16:
      return take(static_cast<double>(f16_to_f32(at<uint16_t>(data, index))));
    case DType::i64:
      return take(at<int64_t>(data, index));
    case DType::i32:
      return take(int64_t{at<int32_t>(data, index)});
    case DType::i16:
      return take(int64_t{at<int16_t>(data, index)});
    case DType::i8:
      return take(int64_t{at<int8_t>(data, index)});
    case DType::u64:
      return take(at<uint64_t>(data, index));
    case DType::u32:
      return take(uint64_t{at<uint32_t>(data, index)});
    case DType::u16:
      return take(uint64_t{at<uint16_t>(data, index)});
    case DType::u8:
      return take(uint64_t{at<uint8_t>(data, index)});
    case DType::boolean:
      return take(uint64_t{at<uint8_t>(data, index) != 0 ? 1u : 0u});
    case DType::i4:
    case DType::i2:
      return take(load_packed_signed(bits_of(dtype), data, index));
    case DType::u4:
    case DType::u2:
      return take(uint64_t{load_packed(bits_of(dtype), data, index)});
  }
  return take(int64_t{0});
}

/// Writes the lowest bits of a whole number.
void store_bits(DType dtype, void* data, int64_t index, uint64_t value) {
  switch (bits_of(dtype)) {
    case 64:
      static_cast<uint64_t*>(data)[index] = value;
      break;
    case 32:
      static_cast<uint32_t*>(data)[index] = static_cast<uint32_t>(value);
      break;
    case 16:
      static_cast<uint16_t*>(data)[index] = static_cast<uint16_t>(value);
      break;
    case 8:
      static_cast<uint8_t*>(data)[index] = static_cast<uint8_t>(value);
      break;
    default:
      store_packed(bits_of(dtype), data, index, value);
  }
}

template <typename T>
void store(DType dtype, void* data, int64_t index, T value) {
  switch (dtype) {
    case DType::f32:
      static_cast<float*>(data)[index] = static_cast<float>(value);
      break;
    case DType::f64:
      static_cast<double*>(data)[index] = static_cast<double>(value);
      break;
    case DType::bf16:
      static_cast<uint16_t*>(data)[index] = f32_to_bf16(round_to_odd(value));
      break;
    case DType::f16:
      static_cast<uint16_t*>(data)[index] = f32_to_f16(round_to_odd(value));
      break;
    case DType::boolean:
      static_cast<uint8_t*>(data)[index] = value != 0 ? 1 : 0;
      break;
    default:
      if constexpr (std::is_same_v<T, double>)
        store_bits(dtype, data, index,
                   is_signed(dtype) ? static_cast<uint64_t>(to_signed(value, bits_of(dtype)))
                                    : to_unsigned(value, bits_of(dtype)));
      else
        store_bits(dtype, data, index, static_cast<uint64_t>(value));
  }
}

}  // namespace

template <>
double load_as<double>(DType dtype, const void* data, int64_t index) {
  return load(dtype, data, index, [](auto value) { return static_cast<double>(value); });
}
template <>
int64_t load_as<int64_t>(DType dtype, const void* data, int64_t index) {
  return load(dtype, data, index, [](auto value) -> int64_t {
    if constexpr (std::is_same_v<decltype(value), double>) return to_signed(value, 64);
    return static_cast<int64_t>(value);
  });
}
template <>
uint64_t load_as<uint64_t>(DType dtype, const void* data, int64_t index) {
  return load(dtype, data, index, [](auto value) -> uint64_t {
    if constexpr (std::is_same_v<decltype(value), double>) return to_unsigned(value, 64);
    return static_cast<uint64_t>(value);
  });
}

void store_number(DType dtype, void* data, int64_t index, double value) { store(dtype, data, index, value); }
void store_number(DType dtype, void* data, int64_t index, int64_t value) { store(dtype, data, index, value); }
void store_number(DType dtype, void* data, int64_t index, uint64_t value) { store(dtype, data, index, value); }

void copy_element(DType dtype, const void* source, int64_t source_index, void* target, int64_t target_index) {
  if (is_packed(dtype)) {
    const int bits = bits_of(dtype);
    return store_packed(bits, target, target_index, load_packed(bits, source, source_index));
  }
  const int64_t size = unpacked_size(dtype);
  std::memcpy(static_cast<char*>(target) + target_index * size, static_cast<const char*>(source) + source_index * size,
              static_cast<size_t>(size));
}

void convert_element(DType from, const void* source, int64_t source_index, DType to, void* target,
                     int64_t target_index) {
  if (from == to) return copy_element(from, source, source_index, target, target_index);
  load(from, source, source_index, [&](auto value) { store_number(to, target, target_index, value); });
}

}  // namespace weft
