// Schedules against PyTorch 1.13.1. The numbers come from stepping a torch.optim.SGD of one parameter and printing
// optimizer.param_groups[0]["lr"] before each step, with the scheduler named beside each test.
#include "weft/train/schedules/schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::train {
namespace {

void expect_rates(const std::function<double(int64_t)>& rate, const std::vector<double>& expected) {
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(rate(static_cast<int64_t>(step)), expected[step], 1e-9 * 0.4 + 1e-9 * expected[step]) << step;
}

// CosineAnnealingLR(optimizer, T_max=10), lr=0.4
TEST(Schedule, CosineIsPyTorchs) {
  expect_rates([](int64_t step) { return cosine(step, 10, 0.4); },
               {0.4, 0.390211303259, 0.361803398875, 0.317557050458, 0.261803398875, 0.2, 0.138196601125,
                0.0824429495415, 0.038196601125, 0.00978869674097});
}

// OneCycleLR(optimizer, max_lr=0.2, total_steps=10, cycle_momentum=False)
TEST(Schedule, OneCycleWithCosineIsPyTorchs) {
  expect_rates([](int64_t step) { return one_cycle(step, 10, 0.2, {}); },
               {0.008, 0.104, 0.2, 0.190096926403, 0.16234913079, 0.122252404387, 0.0777483956127, 0.03765166921,
                0.00990387359731, 8e-07});
}

// OneCycleLR(optimizer, max_lr=0.2, total_steps=12, pct_start=0.25, anneal_strategy="linear", div_factor=10,
//            final_div_factor=100, cycle_momentum=False)
TEST(Schedule, OneCycleWithLinesIsPyTorchs) {
  const OneCycleOptions options{.rise = 0.25, .linear_annealing = true, .start_divisor = 10, .end_divisor = 100};
  expect_rates([&](int64_t step) { return one_cycle(step, 12, 0.2, options); },
               {0.02, 0.11, 0.2, 0.1778, 0.1556, 0.1334, 0.1112, 0.089, 0.0668, 0.0446, 0.0224, 0.0002});
}

// LinearLR(optimizer, start_factor=1/4, total_iters=3), lr=0.4
TEST(Schedule, WarmUpIsPyTorchsLinearRise) {
  ScheduleSpec schedule{.name = "constant", .warmup_epochs = 2};
  expect_rates(make_schedule(schedule, 0.4, 6, 2), {0.1, 0.2, 0.3, 0.4, 0.4, 0.4});
}

// SequentialLR(optimizer, [LinearLR(start_factor=1/4, total_iters=3), CosineAnnealingLR(T_max=8)], [4]), lr=0.4
TEST(Schedule, CosineAfterWarmUpIsPyTorchsSequence) {
  ScheduleSpec schedule{.name = "cosine", .warmup_epochs = 1};
  expect_rates(make_schedule(schedule, 0.4, 12, 4),
               {0.1, 0.2, 0.3, 0.4, 0.4, 0.384775906502, 0.341421356237, 0.276536686473, 0.2, 0.123463313527,
                0.0585786437627, 0.0152240934977});
}

TEST(Schedule, OneCycleOfASingleStepIsFinite) {
  const double rate = one_cycle(0, 1, 0.2, {});
  EXPECT_GT(rate, 0);
  EXPECT_LE(rate, 0.2);
}

TEST(Schedule, NeverAboveThePeakNorBelowZero) {
  for (const std::string name : {"constant", "cosine", "one_cycle"}) {
    ScheduleSpec schedule{.name = name};
    const auto rate = make_schedule(schedule, 0.3, 37, 7);
    for (int64_t step = 0; step < 37; ++step) {
      EXPECT_GE(rate(step), 0) << name << " " << step;
      EXPECT_LE(rate(step), 0.3 + 1e-12) << name << " " << step;
    }
  }
}

}  // namespace
}  // namespace weft::train
