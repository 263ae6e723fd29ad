// What exchanges in memory take that were measured at some sizes and numbers of ranks, at others.
#include "weft/device/shared_exchanges.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

SharedExchanges two_sizes() {
  SharedExchanges exchanges;
  exchanges.add({"all_gather", 2, 1000}, 1e-6);
  exchanges.add({"all_gather", 2, 100'000}, 1e-4);
  exchanges.add({"all_gather", 8, 1000}, 4e-6);
  exchanges.add({"all_gather", 8, 100'000}, 4e-4);
  return exchanges;
}

TEST(SharedExchanges, BetweenTwoSizesTimeIsAPowerOfTheBytes) {
  EXPECT_NEAR(*two_sizes().seconds("all_gather", 2, 10'000), 1e-5, 1e-12);
  EXPECT_NEAR(*two_sizes().seconds("all_gather", 2, 100'000), 1e-4, 1e-12) << "a measured size";
}

TEST(SharedExchanges, FewBytesTakeAsLongAsTheFewestThatWereMeasured) {
  EXPECT_EQ(two_sizes().seconds("all_gather", 2, 4), 1e-6);
}

TEST(SharedExchanges, ManyBytesTravelAtTheRateOfTheMost) {
  EXPECT_NEAR(*two_sizes().seconds("all_gather", 2, 300'000), 3e-4, 1e-12);
}

TEST(SharedExchanges, OtherNumbersOfRanksTakeAsLongAsTheNextLargerOne) {
  EXPECT_EQ(two_sizes().seconds("all_gather", 4, 1000), 4e-6);
}

TEST(SharedExchanges, MoreRanksThanWereMeasuredTakeLongerByAsMuchAsThereAreMore) {
  EXPECT_EQ(two_sizes().seconds("all_gather", 16, 1000), 8e-6);
  EXPECT_NEAR(*two_sizes().seconds("all_gather", 16, 300'000), 2.4e-3, 1e-12);
}

TEST(SharedExchanges, AnOpThatWasNotMeasuredIsNotKnown) {
  for (const char* const op : {"all_reduce", "all_to_all", "send"})
    EXPECT_FALSE(two_sizes().seconds(op, 2, 1000)) << op;
  EXPECT_FALSE(SharedExchanges().seconds("all_gather", 2, 1000));
}

}  // namespace
}  // namespace weft
