#include "weft/search/repeats.h"

#include <gtest/gtest.h>

namespace weft::search {
namespace {

TEST(Repeats, BlocksBetweenOtherTokensAreFound) {
  const std::vector<uint64_t> row{9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 8, 7};
  EXPECT_EQ(find_repeats(row), (std::vector<Repeat>{{0, 1, 1}, {1, 3, 3}, {10, 1, 1}, {11, 1, 1}}));
}

TEST(Repeats, TheShortestPieceCountsWhereSeveralCoverAsMuch) {
  EXPECT_EQ(find_repeats({5, 5, 5, 5}), (std::vector<Repeat>{{0, 1, 4}}));
  EXPECT_EQ(find_repeats({1, 2, 1, 2, 1, 2, 1, 2}), (std::vector<Repeat>{{0, 2, 4}}));
}

TEST(Repeats, SeveralKindsOfBlocksStandSideBySide) {
  // Stages of a convolutional network.
  const std::vector<uint64_t> row{1, 2, 1, 2, 1, 2, 3, 4, 5, 4, 5};
  EXPECT_EQ(find_repeats(row), (std::vector<Repeat>{{0, 2, 3}, {6, 1, 1}, {7, 2, 2}}));
}

TEST(Repeats, ARowIsCoveredOnceWhateverItHolds) {
  uint64_t state = 1;
  for (int length = 0; length < 40; ++length) {
    std::vector<uint64_t> row;
    for (int at = 0; at < length; ++at) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      row.push_back(state >> 62);
    }
    size_t next = 0;
    for (const Repeat& repeat : find_repeats(row)) {
      EXPECT_EQ(repeat.begin, next);
      for (size_t at = 0; at < repeat.length * repeat.count; ++at)
        EXPECT_EQ(row[repeat.begin + at], row[repeat.begin + at % repeat.length]);
      next += repeat.length * repeat.count;
    }
    EXPECT_EQ(next, row.size());
  }
}

}  // namespace
}  // namespace weft::search
