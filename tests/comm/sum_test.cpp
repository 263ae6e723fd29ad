// Sums over ranks against additions one by one.
#include "weft/comm/sum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft::comm {
namespace {

float draw(int source, int64_t i) {
  return std::ldexp(static_cast<float>(std::sin(source * 37.0 + static_cast<double>(i))), (source * 3) % 7);
}

float tree(const std::vector<float>& values, size_t first, size_t count) {
  if (count == 1) return values[first];
  const size_t left = std::bit_ceil(count) / 2;
  return tree(values, first, left) + tree(values, first + left, count - left);
}

class Sums : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sources, Sums, testing::Values(1, 2, 3, 4, 5, 7, 8, 13));

TEST_P(Sums, OfF32AreThoseOfATree) {
  const int count = GetParam();
  constexpr int64_t kSummed = 2500, kBegin = 3, kEnd = 2490;
  std::vector<std::vector<float>> arrays(static_cast<size_t>(count));
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (int s = 0; s < count; ++s) {
    for (int64_t i = 0; i < kSummed; ++i) arrays[static_cast<size_t>(s)].push_back(draw(s, i));
    sources.push_back(arrays[static_cast<size_t>(s)].data());
    targets.push_back(arrays[static_cast<size_t>(s)].data());
  }
  std::vector<float> in_f32(kSummed);
  sum_to_f32(DType::f32, sources, in_f32.data(), kBegin, kEnd);
  sum_to_all(DType::f32, sources, targets, kBegin, kEnd, 0.3f);
  for (int64_t i = 0; i < kSummed; ++i) {
    std::vector<float> values;
    for (int s = 0; s < count; ++s) values.push_back(draw(s, i));
    const float sum = tree(values, 0, values.size());
    const bool inside = i >= kBegin && i < kEnd;
    if (inside) {
      ASSERT_EQ(in_f32[static_cast<size_t>(i - kBegin)], sum) << i;
    }
    for (int s = 0; s < count; ++s)
      ASSERT_EQ(arrays[static_cast<size_t>(s)][static_cast<size_t>(i)],
                inside ? sum * 0.3f : values[static_cast<size_t>(s)])
          << i;
  }
}

/// A type of two bytes.
struct Narrow {
  DType dtype;
  uint16_t (*from_f32)(float);
  float (*to_f32)(uint16_t);
};
constexpr Narrow kBf16{DType::bf16, f32_to_bf16, bf16_to_f32}, kF16{DType::f16, f32_to_f16, f16_to_f32};

void expect_rounded_once(int count, const Narrow& narrow) {
  constexpr int64_t kSummed = 1100;
  std::vector<std::vector<uint16_t>> arrays(static_cast<size_t>(count));
  std::vector<const void*> sources;
  std::vector<uint16_t> sums(kSummed);
  for (int s = 0; s < count; ++s) {
    for (int64_t i = 0; i < kSummed; ++i) arrays[static_cast<size_t>(s)].push_back(narrow.from_f32(draw(s, i)));
    sources.push_back(arrays[static_cast<size_t>(s)].data());
  }
  void* const target = sums.data();
  sum_to_all(narrow.dtype, sources, std::span(&target, 1), 0, kSummed, 0.25f);
  for (int64_t i = 0; i < kSummed; ++i) {
    std::vector<float> values;
    for (int s = 0; s < count; ++s) values.push_back(narrow.to_f32(narrow.from_f32(draw(s, i))));
    ASSERT_EQ(sums[static_cast<size_t>(i)], narrow.from_f32(tree(values, 0, values.size()) * 0.25f)) << i;
  }
}

TEST_P(Sums, OfBf16AreRoundedOnce) { expect_rounded_once(GetParam(), kBf16); }
TEST_P(Sums, OfF16AreRoundedOnce) { expect_rounded_once(GetParam(), kF16); }

TEST(NumbersInF16, AreAllWidened) {
  std::vector<uint16_t> all(1 << 16);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(all.size());
  widen_to_f32(DType::f16, all.data(), wide.data(), std::ssize(all));
  for (size_t i = 0; i < all.size(); ++i) {
    const float expected = f16_to_f32(all[i]);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(wide[i])) << i;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(expected)) << i;
  }
}

TEST(NumbersInF16, AreRoundedAsElsewhere) {
  // Every number of f16, what is halfway to the next, and what is just beside that; and all exponents of f32.
  std::vector<float> values{0.0f, -0.0f, 65504, 65519, 65520, 1e30f, -1e30f, 1e-40f};
  for (uint32_t i = 0; i < 1 << 16; ++i) {
    const auto bits = std::bit_cast<uint32_t>(f16_to_f32(static_cast<uint16_t>(i)));
    for (const uint32_t beside : {0u, 0xfffu, 0x1000u, 0x1001u}) values.push_back(std::bit_cast<float>(bits + beside));
  }
  for (uint32_t exponent = 0; exponent < 256; ++exponent)
    for (const uint32_t mantissa : {0u, 1u, 0x355555u, 0x7fffffu})
      values.push_back(std::bit_cast<float>(exponent << 23 | mantissa));
  std::vector<uint16_t> narrow(values.size());
  narrow_from_f32(DType::f16, values.data(), narrow.data(), std::ssize(values));
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]))
      ASSERT_TRUE(std::isnan(f16_to_f32(narrow[i]))) << i;
    else
      ASSERT_EQ(narrow[i], f32_to_f16(values[i])) << values[i];
  }
}

TEST(NumbersInF16, AreAddedInF32) {
  std::vector<uint16_t> received(3000, f32_to_f16(1));
  std::vector<float> sums(3000, 2048);  // 2049 is no number of f16
  add_to_f32(DType::f16, received.data(), sums.data(), std::ssize(sums));
  EXPECT_EQ(sums, std::vector<float>(3000, 2049));
}

TEST(SumsOfBf16, KeepNanAndInfinity) {
  const uint16_t nan = 0x7f81, infinity = 0x7f80, one = f32_to_bf16(1);
  std::vector<uint16_t> a{nan, infinity, infinity}, b{one, one, static_cast<uint16_t>(0xff80)};
  const void* const sources[] = {a.data(), b.data()};
  void* const targets[] = {a.data(), b.data()};
  sum_to_all(DType::bf16, sources, targets, 0, 3, 1.0f);
  EXPECT_TRUE(std::isnan(bf16_to_f32(a[0])));
  EXPECT_EQ(bf16_to_f32(b[1]), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(bf16_to_f32(b[2])));
}

TEST(SumsOfBf16, ArithmeticIsInF32) {
  std::vector<uint16_t> received{f32_to_bf16(1)};
  float sum = 256;  // 257 is no number of bf16
  add_to_f32(DType::bf16, received.data(), &sum, 1);
  EXPECT_EQ(sum, 257);
}

TEST(Scaling, ReachesAllTargets) {
  const std::vector<float> from{1, 2, 3};
  std::vector<float> a(5, -1), b(5, -1);
  void* const targets[] = {a.data(), b.data()};
  scale_to_all(DType::f32, from.data(), targets, 1, 4, 0.5f);
  EXPECT_EQ(a, (std::vector<float>{-1, 0.5f, 1, 1.5f, -1}));
  EXPECT_EQ(b, a);
}

}  // namespace
}  // namespace weft::comm
