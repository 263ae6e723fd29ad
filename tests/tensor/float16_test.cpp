// f16 and bf16 conversions against slow ones that follow the definition of the formats (IEEE 754-2019, 3.4 and 4.3.1).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "weft/base/rng.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

struct Format {
  int exponent_bits, mantissa_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
};
constexpr Format kF16{5, 10}, kBf16{8, 7};

/// The value of finite bits, by the formula.
double slow_value(const Format& format, uint32_t bits) {
  const double sign = bits >> 15 ? -1 : 1;
  const int exponent = static_cast<int>((bits & 0x7fffu) >> format.mantissa_bits);
  const double fraction = static_cast<double>(bits & ((1u << format.mantissa_bits) - 1)) / (1 << format.mantissa_bits);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - format.bias())
                       : sign * std::ldexp(1 + fraction, exponent - format.bias());
}

/// Rounds to the nearest of the two neighbours, to the one with even bits on a tie: bits of finite positive values
/// count upwards with the value, and the step after the largest is infinity.
uint32_t slow_bits(const Format& format, float value) {
  const uint32_t sign = std::signbit(value) ? 0x8000u : 0;
  const double size = std::abs(static_cast<double>(value));
  const double past_largest = std::ldexp(1.0, format.bias() + 1);
  uint32_t low = 0, high = format.infinity();  // value(low) <= size < value(high)
  if (size >= past_largest) return sign | high;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (slow_value(format, middle) <= size ? low : high) = middle;
  }
  const double below = slow_value(format, low);
  const double above = high == format.infinity() ? past_largest : slow_value(format, high);
  if (size - below != above - size) return sign | (size - below < above - size ? low : high);
  return sign | (low % 2 == 0 ? low : high);
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename Widen>
void check_widening(const Format& format, Widen widen) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = widen(static_cast<uint16_t>(bits));
    const uint32_t size = bits & 0x7fffu;
    if (size > format.infinity()) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else if (size == format.infinity()) {
      ASSERT_TRUE(std::isinf(value)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), slow_value(format, bits)) << bits;
    }
    if (size <= format.infinity()) {
      ASSERT_EQ(std::signbit(value), bits >> 15 != 0) << bits;
    }
  }
}

template <typename Widen, typename Narrow>
void check_narrowing(const Format& format, Widen widen, Narrow narrow) {
  const auto check = [&](float value) { ASSERT_EQ(narrow(value), slow_bits(format, value)) << std::hexfloat << value; };
  for (uint32_t bits = 0; bits < format.infinity(); ++bits) {
    const float value = widen(static_cast<uint16_t>(bits));
    ASSERT_EQ(narrow(value), bits);  // exact values stay
    const double next =
        bits + 1 == format.infinity() ? std::ldexp(1.0, format.bias() + 1) : slow_value(format, bits + 1);
    const auto tie = static_cast<float>((slow_value(format, bits) + next) / 2);
    for (const float near : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 1e38f)}) {
      check(near);
      check(-near);
    }
  }
  RandomStream random(1);
  for (int draw = 0; draw < 200000; ++draw) {
    const float value = float_of(random.bits());
    if (std::isfinite(value)) check(value);
  }
}

TEST(Float16, WidensEveryValueExactly) { check_widening(kF16, f16_to_f32); }
TEST(Float16, NarrowsToTheNearestEven) { check_narrowing(kF16, f16_to_f32, f32_to_f16); }
TEST(Bfloat16, WidensEveryValueExactly) { check_widening(kBf16, bf16_to_f32); }
TEST(Bfloat16, NarrowsToTheNearestEven) { check_narrowing(kBf16, bf16_to_f32, f32_to_bf16); }

TEST(Float16, InfinityAndNanStay) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f32_to_f16(infinity), 0x7c00);
  EXPECT_EQ(f32_to_f16(-infinity), 0xfc00);
  EXPECT_EQ(f32_to_bf16(-infinity), 0xff80);
  for (const uint32_t bits : {0x7fc00000u, 0x7f800001u, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(float_of(bits))))) << bits;
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(float_of(bits))))) << bits;
  }
}

}  // namespace
}  // namespace weft
