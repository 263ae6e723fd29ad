// Tiles of products of bytes give the sums of plain loops, whatever their sizes: the inner dimension in one part or in
// several, numbers that saturate in 16 bits.
#include <gtest/gtest.h>

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

class IntegerTiles : public testing::TestWithParam<Isa> {};

TEST_P(IntegerTiles, GiveTheSumsOfPlainLoops) {
  if (static_cast<int>(GetParam()) > static_cast<int>(detect_isa())) GTEST_SKIP() << "this processor has not these";
  for (const bool uses_vnni : {false, true}) {
    const MultiplyTile multiply = multiply_tile_for(GetParam(), uses_vnni);
    for (const int64_t groups : {0, 1, 5, 127, 128, 129, 300}) {
      const Operands operands = drawn(groups, static_cast<uint64_t>(groups));
      for (const bool flips : {false, true})
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
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, IntegerTiles, testing::Values(Isa::baseline, Isa::avx2, Isa::avx512),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace weft::native
