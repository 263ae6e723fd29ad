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
  constexpr int64_t kElements = 2500, kBegin = 3, kEnd = 2490;
  std::vector<std::vector<float>> arrays(static_cast<size_t>(count));
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (int s = 0; s < count; ++s) {
    for (int64_t i = 0; i < kElements; ++i) arrays[static_cast<size_t>(s)].push_back(draw(s, i));
    sources.push_back(arrays[static_cast<size_t>(s)].data());
    targets.push_back(arrays[static_cast<size_t>(s)].data());
  }
  std::vector<float> in_f32(kElements);
  sum_to_f32(DType::f32, sources, in_f32.data(), kBegin, kEnd);
  sum_to_all(DType::f32, sources, targets, kBegin, kEnd, 0.3f);
  for (int64_t i = 0; i < kElements; ++i) {
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

TEST_P(Sums, OfBf16AreRoundedOnce) {
  const int count = GetParam();
  constexpr int64_t kElements = 1100;
  std::vector<std::vector<uint16_t>> arrays(static_cast<size_t>(count));
  std::vector<const void*> sources;
  std::vector<uint16_t> sums(kElements);
  for (int s = 0; s < count; ++s) {
    for (int64_t i = 0; i < kElements; ++i) arrays[static_cast<size_t>(s)].push_back(f32_to_bf16(draw(s, i)));
    sources.push_back(arrays[static_cast<size_t>(s)].data());
  }
  void* const target = sums.data();
  sum_to_all(DType::bf16, sources, std::span(&target, 1), 0, kElements, 0.25f);
  for (int64_t i = 0; i < kElements; ++i) {
    std::vector<float> values;
    for (int s = 0; s < count; ++s) values.push_back(bf16_to_f32(f32_to_bf16(draw(s, i))));
    ASSERT_EQ(sums[static_cast<size_t>(i)], f32_to_bf16(tree(values, 0, values.size()) * 0.25f)) << i;
  }
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
