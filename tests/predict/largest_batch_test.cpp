#include "weft/predict/largest_batch.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "weft/machines/cluster_file.h"

namespace weft::predict {
namespace {

class LargestBatchTest : public testing::Test {
 protected:
  PlannedModel model() const {
    spec::RunSpec spec;
    spec.model.name = "lenet5";
    spec.threads = 1;
    spec::resolve(spec);
    return {
        .spec = spec,
        .input = [input = models::find_model(library_.models, "lenet5").default_input](const spec::StepShape& shape) {
          models::ModelInput own = input;
          own.batch = shape.batch;
          return own;
        }};
  }
  static machines::ClusterFile cluster(double memory_bytes) {
    machines::ClusterFile cluster = machines::read_cluster("m40_10g");
    cluster.device->memory_bytes = memory_bytes;
    return cluster;
  }
  const Library library_ = standard_library();
};

TEST_F(LargestBatchTest, FitsAndOneMoreDoesNot) {
  const machines::ClusterFile file = cluster(20e6);
  const Place place{.cluster = &file};
  const PlannedModel of = model();
  for (const int64_t ranks : {1, 3}) {
    Strategy strategy = strategy_on(of.spec, place, ranks);
    const LargestBatch found = largest_batch(library_, of, strategy, place);
    EXPECT_EQ(found.batch % ranks, 0);
    EXPECT_GT(found.batch, 16 * ranks);
    EXPECT_LE(found.memory.total(), 20e6);
    strategy.batch = found.batch;
    EXPECT_EQ(predict_on(library_, of, strategy, place).memory.total(), found.memory.total());
    strategy.batch += ranks;
    EXPECT_NE(test::error_of([&] { predict_on(library_, of, strategy, place); }).find("one has 20.0 MB"),
              std::string::npos);
    EXPECT_LE(found.plans, 30) << "by bisection";
  }
}

TEST_F(LargestBatchTest, IsAMultipleOfTheVirtualRanks) {
  const machines::ClusterFile file = cluster(20e6);
  const Place place{.cluster = &file};
  PlannedModel of = model();
  of.spec.virtual_ranks = 8;
  const LargestBatch found = largest_batch(library_, of, strategy_on(of.spec, place, 2), place);
  EXPECT_GT(found.batch, 0);
  EXPECT_EQ(found.batch % 8, 0);
}

TEST_F(LargestBatchTest, WhereNoneFitsTheErrorSaysSo) {
  const machines::ClusterFile file = cluster(1e5);
  const Place place{.cluster = &file};
  const PlannedModel of = model();
  const std::string message =
      test::error_of([&] { largest_batch(library_, of, strategy_on(of.spec, place, 1), place); }, ErrorKind::usage);
  EXPECT_NE(message.find("of memory per rank, and one has 100 kB"), std::string::npos) << message;
}

}  // namespace
}  // namespace weft::predict
