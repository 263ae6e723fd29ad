// What requantization.h says, against whole numbers of 128 bits and cases worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/ops_fixture.h"
#include "weft/base/rng.h"
#include "weft/ops/integer/requantization.h"

namespace weft::ops {
namespace {

__extension__ using Wide = __int128;

constexpr IntegerRange kSigned{-128, 127}, kUnsigned{0, 255};

TEST(Quantize, RoundsHalfToEven) {
  EXPECT_EQ(quantize(0.5f, 1, 0, kSigned), 0);
  EXPECT_EQ(quantize(1.5f, 1, 0, kSigned), 2);
  EXPECT_EQ(quantize(2.5f, 1, 0, kSigned), 2);
  EXPECT_EQ(quantize(-0.5f, 1, 0, kSigned), 0);
  EXPECT_EQ(quantize(-1.5f, 1, 0, kSigned), -2);
}

TEST(Quantize, StopsAtTheLimits) {
  EXPECT_EQ(quantize(1e30f, 0.1f, 3, kSigned), 127);
  EXPECT_EQ(quantize(-INFINITY, 0.1f, 3, kSigned), -128);
  EXPECT_EQ(quantize(INFINITY, 0.1f, 128, kUnsigned), 255);
  EXPECT_EQ(quantize(-1e30f, 0.1f, 128, kUnsigned), 0);
}

TEST(Quantize, TakesNaNForTheLeast) { EXPECT_EQ(quantize(NAN, 1, 7, kUnsigned), 0); }

TEST(Dequantize, IsTheDistanceFromTheZeroPointTimesTheScale) { EXPECT_EQ(dequantize(-3, 0.5f, 5), -4.0f); }

TEST(Requantize, OfTheRealKindRoundsTheSumToF32First) {
  EXPECT_EQ(requantize_real(16777217, 0x1p-18f, 0, kSigned), 64);  // 2^24 + 1 is 2^24 in f32
  EXPECT_EQ(requantize_real(5, 0.5f, 10, kSigned), 12);            // 2.5, half to even
  EXPECT_EQ(requantize_real(7, 0.5f, 10, kSigned), 14);
}

TEST(Requantize, OfTheFixedKindRoundsHalvesUp) {
  const FixedFactor half = fixed_factor(0.5f, 24);
  EXPECT_EQ(requantize_fixed(5, half, 0, kSigned), 3);
  EXPECT_EQ(requantize_fixed(-5, half, 0, kSigned), -2);
}

TEST(FixedFactor, IsTheFactorItselfWithTheBitsOfF32) {
  RandomStream stream(3);
  for (int turn = 0; turn < 2000; ++turn) {
    const auto exponent = static_cast<int>(stream.below(50)) - 30;
    const float factor = std::ldexp(1 + stream.uniform(), exponent);
    for (const int bits : {24, 28, 31}) {
      const FixedFactor fixed = fixed_factor(factor, bits);
      EXPECT_EQ(std::ldexp(static_cast<double>(fixed.multiplier), -fixed.shift), static_cast<double>(factor));
      EXPECT_GE(fixed.shift, 0);
      EXPECT_LT(std::abs(fixed.multiplier), int64_t{1} << 31);
    }
  }
}

TEST(FixedFactor, OfFewBitsIsTheNearest) {
  EXPECT_EQ(fixed_factor(1.0f / 3, 4).multiplier, 11);  // 10.67 / 32
  EXPECT_EQ(fixed_factor(1.0f / 3, 4).shift, 5);
  const FixedFactor carried = fixed_factor(0.999f, 3);  // 7.99 / 8
  EXPECT_EQ(std::ldexp(static_cast<double>(carried.multiplier), -carried.shift), 1.0);
}

TEST(FixedFactor, BearsFactorsThatNoSumSurvives) {
  EXPECT_EQ(multiply_fixed(std::numeric_limits<int32_t>::min(), fixed_factor(1e-30f, 31)), 0);
  EXPECT_EQ(requantize_fixed(1, fixed_factor(INFINITY, 24), 0, kSigned), 127);
  EXPECT_EQ(requantize_fixed(-1, fixed_factor(1e12f, 24), 0, kSigned), -128);
  EXPECT_EQ(requantize_fixed(1000, fixed_factor(NAN, 24), 5, kSigned), 5);
}

TEST(MultiplyFixed, IsExactForEverySum) {
  RandomStream stream(5);
  for (int turn = 0; turn < 20000; ++turn) {
    const auto sum = static_cast<int32_t>(stream.below(UINT32_MAX));
    const FixedFactor factor =
        fixed_factor(std::ldexp(1 + stream.uniform(), static_cast<int>(stream.below(40)) - 35), 31);
    const Wide product = Wide{sum} * factor.multiplier * 2 + (Wide{1} << factor.shift);
    const Wide divisor = Wide{2} << factor.shift;
    const Wide rest = ((product % divisor) + divisor) % divisor;
    EXPECT_EQ(Wide{multiply_fixed(sum, factor)}, (product - rest) / divisor);
  }
}

}  // namespace
}  // namespace weft::ops
