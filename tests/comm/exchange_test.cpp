// Small exchanges among 1 to 9 ranks.
#include "weft/comm/exchange.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/files_for_tests.h"
#include "weft/comm/local/local_group.h"

namespace weft::comm {
namespace {

std::vector<std::string> hosts(int count) { return std::vector<std::string>(static_cast<size_t>(count), "host"); }

class Exchange : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Exchange, testing::Values(1, 2, 3, 4, 5, 8, 9));

TEST_P(Exchange, SumsMinimaAndMaximaReachAllRanks) {
  const int size = GetParam();
  run_ranks(hosts(size), [&](Communicator& ranks) {
    const double mine = ranks.rank() + 1;
    std::vector<double> sums{mine, -2 * mine}, least{mine, -mine}, most{mine, -mine};
    all_reduce_sum(ranks, sums, "sums");
    all_reduce_min(ranks, least, "minima");
    all_reduce_max(ranks, most, "maxima");
    EXPECT_EQ(sums, (std::vector{size * (size + 1) / 2.0, -size * (size + 1.0)}));
    EXPECT_EQ(least, (std::vector{1.0, -1.0 * size}));
    EXPECT_EQ(most, (std::vector{1.0 * size, -1.0}));
  });
}

TEST_P(Exchange, BroadcastReachesAllRanksFromAnyRoot) {
  const int size = GetParam();
  run_ranks(hosts(size), [&](Communicator& ranks) {
    for (int root = 0; root < size; ++root) {
      const std::string text = ranks.rank() == root ? "from " + std::to_string(root) : "mine";
      EXPECT_EQ(broadcast(ranks, root, text, "texts"), "from " + std::to_string(root));
      int value = ranks.rank() == root ? 7 + root : -1;
      broadcast(ranks, root, std::as_writable_bytes(std::span(&value, 1)), "values");
      EXPECT_EQ(value, 7 + root);
    }
  });
}

TEST_P(Exchange, GatherKeepsTheOrderOfRanks) {
  const int size = GetParam();
  std::vector<std::string> expected;
  for (int rank = 0; rank < size; ++rank) expected.push_back(std::string(static_cast<size_t>(rank), 'x'));
  run_ranks(hosts(size), [&](Communicator& ranks) {
    const std::string mine(static_cast<size_t>(ranks.rank()), 'x');
    const auto at_first = gather(ranks, mine, "texts");
    EXPECT_EQ(at_first, ranks.rank() == 0 ? expected : std::vector<std::string>{});
    EXPECT_EQ(all_gather(ranks, mine, "texts"), expected);
  });
}

TEST(ExchangeOrder, SumsNeighboursFirst) {
  // 1e16 + 1 is 1e16 again: (1e16 - 1e16) + (1 + 1) is 2, from the left it would be 2 too, but 1e16 + 1 - 1e16 + 1
  // is 1.
  const std::vector<double> of_rank{1e16, 1, -1e16, 1};
  run_ranks(hosts(4), [&](Communicator& ranks) {
    double value = of_rank[static_cast<size_t>(ranks.rank())];
    all_reduce_sum(ranks, std::span(&value, 1), "order");
    EXPECT_EQ(value, (1e16 + 1) + (-1e16 + 1));
    EXPECT_EQ(value, 0);  // from the left it would be 1
  });
}

TEST(ExchangeBarrier, NobodyLeavesBeforeAllHaveCome) {
  std::atomic<int> come = 0;
  run_ranks(hosts(5), [&](Communicator& ranks) {
    for (int turn = 1; turn <= 20; ++turn) {
      ++come;
      barrier(ranks, "turn");
      EXPECT_GE(come.load(), 5 * turn);
      barrier(ranks, "turn over");
    }
  });
}

TEST(ExchangeErrors, RanksThatDoDifferentThingsAreTold) {
  expect_error(
      [] {
        run_ranks({"a", "b"}, [](Communicator& ranks) {
          barrier(ranks, ranks.rank() == 0 ? "the checkpoint" : "the metrics", {.silence_seconds = 0.05});
        });
      },
      ErrorKind::communication, {"[the checkpoint]", "rank 1 on host 'b'", "'the metrics'"});
}

TEST(ExchangeErrors, OtherNumbersOfValuesAreRefused) {
  expect_error(
      [] {
        run_ranks({"a", "b"}, [](Communicator& ranks) {
          std::vector<double> values(ranks.rank() == 0 ? 3 : 2);
          all_reduce_sum(ranks, values, "metrics", {.silence_seconds = 0.05});
        });
      },
      ErrorKind::communication, {"[metrics]", "rank 1 on host 'b'", "sends 16 bytes where 24"});
}

TEST(ExchangeErrors, ALostRankIsNamedEvenWhereAnotherOneIsAwaited) {
  LocalGroup group({"a", "b", "c", "d"});
  const auto errors = errors_of_ranks(group, [&](Communicator& ranks) {
    if (ranks.rank() == 3)
      group.silence(3);
    else
      barrier(ranks, "the first step", {.silence_seconds = 0.1});
  });
  for (const int rank : {0, 2})  // rank 0 awaits rank 2, which awaits rank 3
    EXPECT_NE(errors[static_cast<size_t>(rank)].find("rank 3 on host 'd'"), std::string::npos)
        << rank << ": " << errors[static_cast<size_t>(rank)];
}

}  // namespace
}  // namespace weft::comm
