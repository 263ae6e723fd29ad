#include "weft/search/memory_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/base/rng.h"

namespace weft::search {
namespace {

/// Every block kept, computed twice or in a file.
struct Enumerated {
  double seconds = kNever, least_bytes = kNever;
};
Enumerated enumerate(const std::vector<BlockClass>& classes, double free_bytes, double in_flight) {
  std::vector<BlockClass> blocks;
  for (const BlockClass& of : classes) blocks.insert(blocks.end(), static_cast<size_t>(of.count), of);
  size_t choices = 1;
  for (size_t at = 0; at < blocks.size(); ++at) choices *= 3;
  Enumerated best;
  for (size_t choice = 0; choice < choices; ++choice) {
    double bytes = 0, seconds = 0, once_more = 0;
    size_t digits = choice;
    for (const BlockClass& block : blocks) {
      const size_t what = digits % 3;
      digits /= 3;
      if (what == 0) bytes += in_flight * block.kept_bytes;
      if (what == 1) {
        bytes += in_flight * block.boundary_bytes;
        seconds += block.recompute_seconds;
        once_more = std::max(once_more, block.kept_bytes);
      }
      if (what == 2) seconds += block.file_seconds;
    }
    bytes += once_more;
    if (seconds < kNever) best.least_bytes = std::min(best.least_bytes, bytes);
    if (bytes <= free_bytes) best.seconds = std::min(best.seconds, seconds);
  }
  return best;
}

TEST(MemoryChoice, IsThatOfAnEnumerationOfAllBlocks) {
  RandomStream random(7);
  const auto number = [&](int64_t from, int64_t below) {
    return static_cast<double>(from + static_cast<int64_t>(random.below(static_cast<uint64_t>(below - from))));
  };
  int fitting = 0;
  for (int draw = 0; draw < 200; ++draw) {
    std::vector<BlockClass> classes;
    const bool has_file = draw % 3 == 0;
    for (int kind = 0; kind < 3; ++kind) {
      BlockClass block{.kept_bytes = number(4, 40), .recompute_seconds = number(1, 20)};
      block.boundary_bytes = number(0, static_cast<int64_t>(block.kept_bytes));
      if (has_file) block.file_seconds = number(1, 40);
      block.count = static_cast<int64_t>(number(1, 4));
      classes.push_back(block);
    }
    const double in_flight = number(1, 4), free = number(10, 300);
    const MemoryChoice choice = choose_kept(classes, free, in_flight);
    const Enumerated wanted = enumerate(classes, free, in_flight);
    EXPECT_EQ(choice.fits, wanted.seconds < kNever) << draw;
    EXPECT_DOUBLE_EQ(choice.least_bytes, wanted.least_bytes) << draw;
    if (!choice.fits) continue;
    ++fitting;
    EXPECT_DOUBLE_EQ(choice.seconds, wanted.seconds) << draw;
    EXPECT_LE(choice.bytes, free) << draw;
    EXPECT_DOUBLE_EQ(choice.bound_seconds, wanted.seconds) << "the programming is complete";
  }
  EXPECT_GT(fitting, 100);
}

TEST(MemoryChoice, EqualBlocksAreCountedAndNotToldApart) {
  const std::vector<BlockClass> blocks{{.kept_bytes = 10, .boundary_bytes = 1, .recompute_seconds = 2, .count = 1000}};
  const MemoryChoice choice = choose_kept(blocks, 5000, 1);
  EXPECT_TRUE(choice.fits);
  EXPECT_EQ(choice.recomputed, 557) << "each saves 9, and one is there once more";
  EXPECT_LE(choice.points, 1001);
}

TEST(MemoryChoice, TheBoundStaysBelowWhereTooManyPointsAreLeftOut) {
  std::vector<BlockClass> blocks;
  RandomStream random(3);
  for (int at = 0; at < 12; ++at)
    blocks.push_back({.kept_bytes = 100.0 + static_cast<double>(random.below(1000)),
                      .boundary_bytes = 10,
                      .recompute_seconds = 1.0 + static_cast<double>(random.below(1000)),
                      .count = 1});
  const MemoryChoice all = choose_kept(blocks, 3000, 1), few = choose_kept(blocks, 3000, 1, 16);
  ASSERT_TRUE(all.fits && few.fits);
  EXPECT_LE(few.bound_seconds, all.seconds);
  EXPECT_GE(few.seconds, all.seconds);
  EXPECT_LT(few.points, all.points);
}

}  // namespace
}  // namespace weft::search
