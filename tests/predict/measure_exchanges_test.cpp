// Exchanges between ranks that are threads here, measured; and what predictions make of measured ones.
#include "weft/predict/measure_exchanges.h"

#include <gtest/gtest.h>

#include <set>

#include "weft/graph/collective.h"
#include "weft/ops/all.h"
#include "weft/predict/cluster_times.h"
#include "weft/predict/node_times.h"

namespace weft::predict {
namespace {

TEST(MeasureExchanges, EachKindIsMeasuredAtEachSizeByAsManyRanksAsHaveCores) {
  const OpRegistry ops = ops::make_registry();
  const SharedExchanges measured =
      measure_exchanges(ops, {.threads = 1, .cores = 4, .largest_bytes = 1 << 18, .rounds = 1});
  std::set<std::string> kinds;
  for (const auto& [exchange, seconds] : measured.all()) {
    EXPECT_GT(seconds, 0) << std::get<std::string>(exchange);
    EXPECT_LE(std::get<int64_t>(exchange), 1 << 18);
    kinds.insert(std::get<std::string>(exchange));
  }
  const std::set<std::string> all = {kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduceToRoot};
  EXPECT_EQ(kinds, all);
  EXPECT_EQ(measured.all().size(), all.size() * 2 * 4) << "of two and of four ranks: 4, 16, 64, 256 KiB";
}

TEST(MeasureExchanges, RanksThatWouldTakeTurnsAreNotMeasured) {
  const OpRegistry ops = ops::make_registry();
  EXPECT_TRUE(measure_exchanges(ops, {.threads = 2, .cores = 3, .largest_bytes = 4096, .rounds = 1}).empty());
}

class ExchangeInMemory : public testing::Test {
 protected:
  static ExchangeTimes times(const GroupSizes& sizes) {
    auto measured = std::make_shared<SharedExchanges>();
    for (const int ranks : {2, 4}) {
      measured->add({kAllGather, ranks, 1000}, 1e-3 * ranks);
      measured->add({kAllReduce, ranks, 1000}, 5e-3);  // slower than the rates say
    }
    return exchange_in_memory(exchange_by({.count = sizes.data, .latency_seconds = 1e-6, .bytes_per_second = 1e9}, 8),
                              measured, sizes);
  }
};

TEST_F(ExchangeInMemory, WhatWasMeasuredTakesAsLongAlongEachAxis) {
  const ExchangeTimes exchange = times({.data = 2, .tensor = 4});
  EXPECT_EQ(exchange.seconds(kDataAxis, kAllGather, 1000), 2e-3);
  EXPECT_EQ(exchange.seconds(kTensorAxis, kAllGather, 1000), 4e-3);
  EXPECT_EQ(exchange.seconds(kDataAxis, kAllReduce, 1000), 5e-3);
}

TEST_F(ExchangeInMemory, WhatWasNotMeasuredTakesAsLongAsTheRatesSay) {
  const ExchangeTimes exchange = times({.data = 2, .tensor = 2});
  EXPECT_NEAR(exchange.seconds(kDataAxis, kReduceScatter, 1'000'000), 5e-4, 1e-4);
  EXPECT_NEAR(exchange.seconds(kPipelineAxis, kSend, 1'000'000), 1e-3, 2e-4);
}

TEST_F(ExchangeInMemory, PassesWeighByRatesThatAreTheSameOnEveryMachine) {
  const passes::Ranks weighed_by = ranks_of(times({.data = 2}));
  EXPECT_EQ(weighed_by.bytes_per_second, 1e9);
  EXPECT_EQ(weighed_by.latency_seconds, 1e-6);
}

}  // namespace
}  // namespace weft::predict
