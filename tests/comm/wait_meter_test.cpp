#include "weft/comm/wait_meter.h"

#include <gtest/gtest.h>

namespace weft::comm {
namespace {

/// A meter on a clock that a test moves.
struct WaitMeters : testing::Test {
  double now = 100;
  WaitMeter meter{[this] { return now; }};

  double look_after(double seconds, double slept_seconds = 0) {
    now += seconds;
    return meter.looked(slept_seconds);
  }
};

TEST_F(WaitMeters, TimeBetweenLooksIsWaiting) {
  meter.begin();
  EXPECT_NEAR(look_after(0.001), 0.001, 1e-9);
  EXPECT_NEAR(look_after(0.015, /*slept_seconds=*/0.015), 0.016, 1e-9);
  EXPECT_NEAR(look_after(0.002, /*slept_seconds=*/0.015), 0.018, 1e-9) << "woken before its time";
  now += 0.001;
  meter.end();
  EXPECT_NEAR(meter.waited_seconds(), 0.019, 1e-9);
}

TEST_F(WaitMeters, TimeBetweenWaitsIsNone) {
  for (int time = 0; time < 3; ++time) {
    now += 1;
    meter.begin();
    now += 0.002;
    meter.end();
  }
  EXPECT_NEAR(meter.waited_seconds(), 0.006, 1e-9);
}

TEST_F(WaitMeters, ALookThatComesLateIsAStandstillOfTheWaiter) {
  meter.begin();
  look_after(0.001);
  EXPECT_NEAR(look_after(0.06), 0.061, 1e-9) << "the wait itself took that long";
  EXPECT_NEAR(meter.waited_seconds(), 0.001, 1e-9);
  look_after(0.06, /*slept_seconds=*/0.01);
  EXPECT_NEAR(meter.waited_seconds(), 0.011, 1e-9) << "it meant to sleep for so long";
  now += 0.06;
  meter.end();
  EXPECT_NEAR(meter.waited_seconds(), 0.011, 1e-9);
}

TEST_F(WaitMeters, ALookThatIsHardlyLateIsNone) {
  meter.begin();
  look_after(0.01 + 0.9 * WaitMeter::kLateSeconds, /*slept_seconds=*/0.01);
  EXPECT_NEAR(meter.waited_seconds(), 0.01 + 0.9 * WaitMeter::kLateSeconds, 1e-9);
}

TEST_F(WaitMeters, WorkIsNoWaiting) {
  meter.begin();
  look_after(0.001);
  now += 0.003;
  EXPECT_NEAR(meter.worked(), 0.004, 1e-9);
  look_after(0.001);
  EXPECT_NEAR(meter.waited_seconds(), 0.002, 1e-9);
}

TEST_F(WaitMeters, SleepsAreShortBesideTheWait) {
  EXPECT_DOUBLE_EQ(sleep_in_wait(0, 0.02), 1e-3);
  EXPECT_DOUBLE_EQ(sleep_in_wait(0.05, 0.02), 5e-3);
  EXPECT_DOUBLE_EQ(sleep_in_wait(10, 0.02), 0.02);
  int looks = 0;
  for (double waited = 0; waited < 1; waited += sleep_in_wait(waited, 0.02)) ++looks;
  EXPECT_LT(looks, 90) << "in a wait of a second";
}

}  // namespace
}  // namespace weft::comm
