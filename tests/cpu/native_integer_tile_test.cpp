// Tiles of products of bytes give the sums of plain loops, whatever their sizes: the inner dimension in one part or in
// several, numbers that saturate in 16 bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "weft/base/rng.h"
#include "weft/cpu/native/integer/tile.h"

namespace weft::native {
namespace {

struct Operands {
  std::vector<uint8_t> a, b;
  int64_t a_row = 0, b_block = 0;
};

Operands drawn(int64_t groups, uint64_t seed) {
  RandomStream stream(mix(seed, hash_name("tile")));
  Operands operands;
  operands.a_row = groups * kInnerGroup + 8;  // rows may lie apart
  operands.b_block = groups * kGroupBytes;
  operands.a.resize(static_cast<size_t>(kTileRows * operands.a_row));
  operands.b.resize(static_cast<size_t>(kTileBlocks * operands.b_block));
  for (auto* bytes : {&operands.a, &operands.b})
    for (uint8_t& byte : *bytes) {
      const double draw = stream.uniform();
      byte = draw < 0.2 ? 255 : draw < 0.4 ? 128 : draw < 0.6 ? 127 : static_cast<uint8_t>(256 * stream.uniform());
    }
  return operands;
}

std::vector<int32_t> plain(const IntegerTile& t) {
  std::vector<int32_t> sums(static_cast<size_t>(kTileRows * kTileColumns), -1);
  for (int64_t r = 0; r < t.rows; ++r)
    for (int64_t c = 0; c < t.blocks * kColumnBlock; ++c) {
      int32_t sum = 0;
      for (int64_t k = 0; k < t.groups * kInnerGroup; ++k) {
        const int64_t at = c / kColumnBlock * t.b_block + k / kInnerGroup * kGroupBytes +
                           c % kColumnBlock * kInnerGroup + k % kInnerGroup;
        const int32_t column = t.flips_b ? t.b[at] - 128 : static_cast<int8_t>(t.b[at]);
        sum += t.a[r * t.a_row + k] * column;
      }
      sums[static_cast<size_t>(r * kTileColumns + c)] = sum;
    }
  return sums;
}

/// Rows of the largest bytes by columns of the largest and the smallest narrow ones, which come nearest to 16 bits'
/// ends.
Operands narrow(int64_t groups) {
  Operands operands = drawn(groups, 3);
  for (size_t at = 0; at < operands.b.size(); ++at)
    operands.b[at] = static_cast<uint8_t>(at % 3 == 0   ? -64
                                          : at % 3 == 1 ? 64
                                                        : static_cast<int8_t>(operands.b[at]) / 2);
  for (size_t column = 0; column < operands.b.size(); column += 2 * kInnerGroup)
    std::fill_n(operands.b.begin() + static_cast<int64_t>(column), kInnerGroup,
                column % (4 * kInnerGroup) == 0 ? uint8_t{64} : static_cast<uint8_t>(-64));
  std::fill_n(operands.a.begin(), operands.a_row, uint8_t{255});
  return operands;
}

/// On every number of rows and blocks.
void expect_plain_sums(MultiplyTile multiply, const Operands& operands, int64_t groups, bool flips) {
  for (int64_t rows = 1; rows <= kTileRows; ++rows)
    for (int64_t blocks = 1; blocks <= kTileBlocks; blocks += rows % 5 == 0 ? 1 : 3) {
      std::vector<int32_t> sums(static_cast<size_t>(kTileRows * kTileColumns), -1);
      const IntegerTile tile{
          operands.a.data(), operands.a_row, operands.b.data(), operands.b_block, groups, rows, blocks, flips,
          sums.data()};
      multiply(tile);
      const std::vector<int32_t> expected = plain(tile);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < blocks * kColumnBlock; ++c) {
          const auto at = static_cast<size_t>(r * kTileColumns + c);
          ASSERT_EQ(sums[at], expected[at]) << groups << " groups, " << rows << " rows, column " << c;
        }
    }
}

class IntegerTiles : public testing::TestWithParam<Isa> {};

TEST_P(IntegerTiles, GiveTheSumsOfPlainLoops) {
  if (static_cast<int>(GetParam()) > static_cast<int>(detect_isa())) GTEST_SKIP() << "this processor has not these";
  for (const bool uses_vnni : {false, true})
    for (const int64_t groups : {0, 1, 5, 127, 128, 129, 300})
      for (const bool flips : {false, true})
        expect_plain_sums(multiply_tile_for(GetParam(), uses_vnni), drawn(groups, static_cast<uint64_t>(groups)),
                          groups, flips);
}

TEST_P(IntegerTiles, OfNarrowColumnsGiveTheSumsOfPlainLoops) {
  if (static_cast<int>(GetParam()) > static_cast<int>(detect_isa())) GTEST_SKIP() << "this processor has not these";
  const NarrowColumns columns = narrow_columns_for(GetParam());
  EXPECT_EQ(columns.multiply != nullptr, GetParam() == Isa::avx2);
  if (columns.multiply == nullptr) return;
  for (const int64_t groups : {0, 1, 5, 127, 128, 129, 300}) {
    const Operands operands = narrow(groups);
    EXPECT_TRUE(columns.are_narrow(operands.b.data(), static_cast<int64_t>(operands.b.size())));
    expect_plain_sums(columns.multiply, operands, groups, /*flips=*/false);
  }
}

TEST_P(IntegerTiles, AreNarrowToTheirLastByte) {
  if (static_cast<int>(GetParam()) > static_cast<int>(detect_isa())) GTEST_SKIP() << "this processor has not these";
  const NarrowColumns columns = narrow_columns_for(GetParam());
  if (columns.are_narrow == nullptr) return;
  std::vector<uint8_t> bytes(3 * kGroupBytes + 5, 64);
  const auto count = static_cast<int64_t>(bytes.size());
  for (const int8_t wide : {65, 127, -65, -128})
    for (const int64_t at : {int64_t{0}, int64_t{31}, int64_t{70}, count - 1}) {
      bytes[static_cast<size_t>(at)] = static_cast<uint8_t>(wide);
      EXPECT_FALSE(columns.are_narrow(bytes.data(), count)) << int{wide} << " at " << at;
      bytes[static_cast<size_t>(at)] = static_cast<uint8_t>(-64);
    }
  EXPECT_TRUE(columns.are_narrow(bytes.data(), count));
}

INSTANTIATE_TEST_SUITE_P(Isa, IntegerTiles, testing::Values(Isa::baseline, Isa::avx2, Isa::avx512),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace weft::native
