#include "weft/run/metrics_history.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"
#include "weft/run/metrics_log.h"

namespace weft::run {
namespace {

using MetricsHistoryTest = FilesTest;

TEST_F(MetricsHistoryTest, ReadsWhatTheLogWrote) {
  {
    MetricsLog log(path("metrics.jsonl"), step::Position{});
    for (int64_t step = 0; step < 40; ++step)
      log.add(step::StepMetrics{.step = step, .learning_rate = 0.5, .loss = static_cast<double>(step)});
    log.add(step::EpochMetrics{.step = 40, .train_loss = 1.5, .test_metrics = {{"accuracy", 0.25}}});
  }
  const MetricsHistory history = read_metrics(path("metrics.jsonl"));
  EXPECT_EQ(history.by_step.at("loss").steps, (std::vector<int64_t>{20, 40}));
  EXPECT_EQ(history.by_step.at("loss").values, (std::vector<double>{19, 39}));
  EXPECT_EQ(history.by_step.at("learning_rate").values, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(history.by_epoch.at("test_accuracy").values, (std::vector<double>{0.25}));
  EXPECT_EQ(history.by_epoch.at("epoch").steps, (std::vector<int64_t>{40}));
  EXPECT_TRUE(std::isnan(history.by_epoch.at("test_loss").values.at(0)));
}

TEST_F(MetricsHistoryTest, PassesOverATornLine) {
  write_atomically(path("metrics.jsonl"), "{\"kind\":\"step\",\"step\":20,\"loss\":1}\n{\"kind\":\"step\",\"st");
  EXPECT_EQ(read_metrics(path("metrics.jsonl")).by_step.at("loss").steps.size(), 1u);
}

TEST_F(MetricsHistoryTest, OfNoFileIsEmpty) {
  const MetricsHistory history = read_metrics(path("none.jsonl"));
  EXPECT_TRUE(history.by_step.empty());
  EXPECT_TRUE(history.by_epoch.empty());
}

}  // namespace
}  // namespace weft::run
