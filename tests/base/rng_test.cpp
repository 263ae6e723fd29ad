#include "weft/base/rng.h"

#include <gtest/gtest.h>

#include <set>

namespace weft {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers of philox4x32-10 from the authors' library Random123 (tests/kat_vectors).
TEST(Philox, KnownAnswerOfZeros) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(Philox, KnownAnswerOfOnes) {
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, KnownAnswerOfDigitsOfPi) {
  // counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0, least significant word first
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsPhiloxWordByWord) {
  RandomStream stream(42, 7);
  for (uint64_t counter = 0; counter < 3; ++counter)
    for (const uint32_t word : philox(42, 7, counter)) EXPECT_EQ(stream.bits(), word);
}

TEST(RandomStream, UniformStaysBelowOne) {
  EXPECT_EQ(uniform_from_bits(0), 0.0f);
  EXPECT_LT(uniform_from_bits(0xffffffff), 1.0f);
}

TEST(RandomStream, BelowCoversItsRangeEvenly) {
  RandomStream stream(1);
  std::array<int, 5> counts{};
  for (int draw = 0; draw < 50000; ++draw) ++counts.at(stream.below(5));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 450);  // 5 standard deviations
}

TEST(RandomStream, NormalHasTheMomentsOfTheNormalDistribution) {
  RandomStream stream(3);
  constexpr int kDraws = 200000;
  double sum = 0, squares = 0, fourth = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double value = stream.normal();
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.012);
  EXPECT_NEAR(squares / kDraws, 1, 0.016);
  EXPECT_NEAR(fourth / kDraws, 3, 0.11);
}

TEST(RandomStream, SubstreamsDiffer) { EXPECT_NE(RandomStream(1, 0).bits(), RandomStream(1, 1).bits()); }

TEST(Mix, NeighbouringWordsGiveDistinctKeys) {
  std::set<uint64_t> keys;
  for (uint64_t a = 0; a < 100; ++a)
    for (uint64_t b = 0; b < 100; ++b) keys.insert(mix(a, b));
  EXPECT_EQ(keys.size(), 10000u);
}

TEST(HashName, IsFnv1a) {
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(hash_name("foobar"), 0x85944171f73967e8ull);
}

}  // namespace
}  // namespace weft
