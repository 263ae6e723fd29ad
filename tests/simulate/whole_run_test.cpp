#include "weft/simulate/whole_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "weft/base/error.h"

namespace weft::simulate {
namespace {

RunModel model() {
  return {.hosts = 128,
          .devices_per_host = 8,
          .failures_per_device_hour = 2e-5,
          .restart_seconds = 300,
          .repair_seconds = 4 * 3600,
          .checkpoint_seconds = 60,
          .restore_seconds = 60};
}
constexpr double kWeeks = 7 * 24 * 3600.0;

TEST(WholeRun, WithoutFailuresSpendsItsCheckpointsOnly) {
  RunModel quiet = model();
  quiet.failures_per_device_hour = 0;
  const RunOutcome outcome = simulate_run(quiet, {.checkpoint_interval_seconds = 540}, 600 * 100, 1);
  EXPECT_NEAR(outcome.goodput(), 0.9, 1e-6);
  EXPECT_EQ(outcome.failures, 0);
  EXPECT_NEAR(outcome.checkpoint_seconds, 6000, 1e-6);
}

TEST(WholeRun, AccountsForEverySecond) {
  const RunOutcome o =
      simulate_run(model(), {.checkpoint_interval_seconds = 3000, .goes_on_with_fewer = true}, 8 * kWeeks, 3);
  EXPECT_GT(o.failures, 10);
  EXPECT_NEAR(o.useful_seconds + o.checkpoint_seconds + o.lost_seconds + o.down_seconds + o.slowed_seconds, o.seconds,
              1e-3 * o.seconds);
}

TEST(WholeRun, FailsAsOftenAsItsRateSays) {
  RunModel instant = model();
  instant.restart_seconds = instant.restore_seconds = instant.repair_seconds = 0;
  const double weeks = 100;
  const RunOutcome outcome = simulate_run(instant, {.checkpoint_interval_seconds = 3000}, weeks * kWeeks, 7);
  const double expected = 1024 * 2e-5 * weeks * 7 * 24;
  EXPECT_NEAR(static_cast<double>(outcome.failures), expected, 4 * std::sqrt(expected));
}

TEST(WholeRun, IsTheSameForTheSameSeed) {
  const RunPolicy policy{.checkpoint_interval_seconds = 3000};
  EXPECT_EQ(simulate_run(model(), policy, kWeeks, 5).useful_seconds,
            simulate_run(model(), policy, kWeeks, 5).useful_seconds);
  EXPECT_NE(simulate_run(model(), policy, kWeeks, 5).useful_seconds,
            simulate_run(model(), policy, kWeeks, 6).useful_seconds);
}

TEST(WholeRun, TheBestIntervalIsNearYoungsAndDalys) {
  const double mean = 1 / model().failures_per_second();
  const double young = young_interval(60, mean), daly = daly_interval(60, mean);
  EXPECT_NEAR(daly / young, 1, 0.05);
  RunModel instant = model();
  instant.repair_seconds = 0;
  const double best = best_interval(instant, {}, 400 * kWeeks, 11);
  EXPECT_NEAR(best / daly, 1, 0.35);  // the optimum is flat
  const auto goodput = [&](double interval) {
    return simulate_run(instant, {.checkpoint_interval_seconds = interval}, 400 * kWeeks, 11).goodput();
  };
  EXPECT_GE(goodput(daly), 0.998 * goodput(best));
  EXPECT_LT(goodput(daly * 5), goodput(daly));
  EXPECT_LT(goodput(daly / 5), goodput(daly));
}

TEST(WholeRun, GoingOnWithFewerBeatsWaiting) {
  RunPolicy policy{.checkpoint_interval_seconds = 3000};
  const double waits = simulate_run(model(), policy, 20 * kWeeks, 2).goodput();
  policy.goes_on_with_fewer = true;
  const double fewer = simulate_run(model(), policy, 20 * kWeeks, 2).goodput();
  policy.spare_hosts = 2;
  const double spare = simulate_run(model(), policy, 20 * kWeeks, 2).goodput();
  EXPECT_GT(fewer, waits + 0.02);
  EXPECT_GE(spare, fewer);
}

TEST(WholeRun, AHostThatFailsStopsAllThatHoldTheWeightsWithIt) {
  const RunPolicy policy{.checkpoint_interval_seconds = 3000, .goes_on_with_fewer = true};
  RunModel divided = model();
  divided.hosts_per_replica = 64;
  EXPECT_LT(simulate_run(divided, policy, 20 * kWeeks, 2).goodput(),
            simulate_run(model(), policy, 20 * kWeeks, 2).goodput() - 0.02);
}

TEST(WholeRun, ACampaignOfAHundredThousandDeviceHoursGainsByWhatWeftDoes) {
  const Campaign all = campaign(model(), 100'000, 3600, 1);
  ASSERT_EQ(all.rows.size(), 6u);
  EXPECT_GE(all.rows.back().outcome.goodput(), all.rows[1].outcome.goodput());
  for (const Campaign::Row& row : all.rows) EXPECT_LE(row.outcome.goodput(), 1);
}

/// The clock is then too coarse for what is left of an interval.
TEST(WholeRun, EndsAfterManyYearsOfFrequentCheckpoints) {
  const RunModel rare{.failures_per_device_hour = 3.6, .restart_seconds = 1e9, .repair_seconds = 0};
  const RunOutcome outcome = simulate_run(rare, {.checkpoint_interval_seconds = 0.3}, 5e9, 1);
  EXPECT_EQ(outcome.seconds, 5e9);
  EXPECT_GE(outcome.failures, 4);
}

TEST(WholeRun, TooManyFailuresAreAnError) {
  RunModel often = model();
  often.hosts = 100'000;
  often.failures_per_device_hour = 1;
  often.restart_seconds = often.restore_seconds = 0;
  try {
    campaign(often, 1e10, 3600, 1);
    FAIL();
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("is too long to simulate"), std::string::npos) << what;
    EXPECT_NE(what.find("failures.per_device_hour"), std::string::npos) << what;
  }
}

TEST(WholeRun, EndsWhenTheWorkIsDone) {
  const RunOutcome outcome =
      simulate_until(model(), {.checkpoint_interval_seconds = 3000, .goes_on_with_fewer = true}, kWeeks, 4);
  EXPECT_NEAR(outcome.useful_seconds, kWeeks, 1);
  EXPECT_GT(outcome.seconds, kWeeks);
}

}  // namespace
}  // namespace weft::simulate
