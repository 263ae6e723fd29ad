// Schedules against PyTorch 1.13.1. The numbers come from stepping a torch.optim.SGD of one parameter and printing
// optimizer.param_groups[0]["lr"] before each step, with the scheduler named beside each test.
#include "weft/step/schedules/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "weft/step/plateau.h"

namespace weft::step {
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

// OneCycleLR(optimizer, max_lr=0.2, total_steps=10), the momentum of its groups
TEST(MomentumSchedule, OneCycleIsPyTorchs) {
  expect_rates([](int64_t step) { return one_cycle_momentum(step, 10, 0.85, 0.95, {}); },
               {0.95, 0.9, 0.85, 0.854951556605, 0.868825509907, 0.888873953302, 0.911126046698, 0.931174490093,
                0.945048443395, 0.95});
}

// OneCycleLR(optimizer, max_lr=0.2, total_steps=12, pct_start=0.25, anneal_strategy="linear", base_momentum=0.8,
//            max_momentum=0.9)
TEST(MomentumSchedule, OneCycleWithLinesIsPyTorchs) {
  spec::RunSpec spec;
  spec.schedule = {.name = "one_cycle", .rise = 0.25, .annealing = "linear"};
  spec.optimizer.momentum_schedule = {.name = "one_cycle", .low = 0.8, .high = 0.9};
  expect_rates(make_momentum_schedule(spec, spec::Course(12, 4)),
               {0.9, 0.85, 0.8, 0.811111111111, 0.822222222222, 0.833333333333, 0.844444444444, 0.855555555556,
                0.866666666667, 0.877777777778, 0.888888888889, 0.9});
}

TEST(MomentumSchedule, PiecewiseHasLevelsOrLines) {
  spec::RunSpec spec;
  spec.optimizer.momentum_schedule = {.name = "piecewise", .boundaries = {1, 2}, .momenta = {0.5, 0.9, 0.8}};
  expect_rates(make_momentum_schedule(spec, spec::Course(6, 2)), {0.5, 0.5, 0.9, 0.9, 0.8, 0.8});
  spec.optimizer.momentum_schedule = {.name = "piecewise", .boundaries = {0, 2}, .momenta = {0.5, 0.9}, .lines = true};
  expect_rates(make_momentum_schedule(spec, spec::Course(6, 2)), {0.5, 0.6, 0.7, 0.8, 0.9, 0.9});
}

// LinearLR(optimizer, start_factor=1/4, total_iters=3), lr=0.4
TEST(Schedule, WarmUpIsPyTorchsLinearRise) {
  spec::ScheduleSpec schedule{.name = "constant", .warmup_epochs = 2};
  expect_rates(make_schedule(schedule, 0.4, 6, 2), {0.1, 0.2, 0.3, 0.4, 0.4, 0.4});
}

// SequentialLR(optimizer, [LinearLR(start_factor=1/4, total_iters=3), CosineAnnealingLR(T_max=8)], [4]), lr=0.4
TEST(Schedule, CosineAfterWarmUpIsPyTorchsSequence) {
  spec::ScheduleSpec schedule{.name = "cosine", .warmup_epochs = 1};
  expect_rates(make_schedule(schedule, 0.4, 12, 4),
               {0.1, 0.2, 0.3, 0.4, 0.4, 0.384775906502, 0.341421356237, 0.276536686473, 0.2, 0.123463313527,
                0.0585786437627, 0.0152240934977});
}

// StepLR(optimizer, 3, 0.5), lr=0.4
TEST(Schedule, StepIsPyTorchs) {
  spec::ScheduleSpec schedule{.name = "step", .every_epochs = 3, .factor = 0.5};
  expect_rates(make_schedule(schedule, 0.4, 10, 1), {0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.05});
}

// ExponentialLR(optimizer, 0.8), lr=0.4
TEST(Schedule, ExponentialIsPyTorchs) {
  spec::ScheduleSpec schedule{.name = "exponential", .every_epochs = 1, .factor = 0.8};
  expect_rates(make_schedule(schedule, 0.4, 8, 1),
               {0.4, 0.32, 0.256, 0.2048, 0.16384, 0.131072, 0.1048576, 0.08388608});
}

TEST(Schedule, ExponentialFallsBetweenEpochsToo) {
  spec::ScheduleSpec schedule{.name = "exponential", .every_epochs = 1, .factor = 0.25};
  expect_rates(make_schedule(schedule, 0.4, 4, 2), {0.4, 0.2, 0.1, 0.05});
}

TEST(Schedule, StepFallsTwiceInARunByDefault) {
  expect_rates(make_schedule({.name = "step"}, 0.4, 9, 3), {0.4, 0.4, 0.4, 0.04, 0.04, 0.04, 0.004, 0.004, 0.004});
}

// MultiStepLR(optimizer, [2, 5, 6], 0.1), lr=0.4
TEST(Schedule, PiecewiseWithoutFactorsIsPyTorchsMultiStep) {
  spec::ScheduleSpec schedule{.name = "piecewise", .boundaries = {2, 5, 6}};
  expect_rates(make_schedule(schedule, 0.4, 8, 1), {0.4, 0.4, 0.04, 0.04, 0.04, 0.004, 0.0004, 0.0004});
}

TEST(Schedule, PiecewiseHasGivenLevels) {
  spec::ScheduleSpec schedule{.name = "piecewise", .boundaries = {1, 1.5}, .factors = {0.5, 1, 0.25}};
  expect_rates(make_schedule(schedule, 0.4, 8, 4), {0.2, 0.2, 0.2, 0.2, 0.4, 0.4, 0.1, 0.1});
}

// 0.4 * numpy.interp(range(7), [1, 3, 5], [0.5, 1, 0])
TEST(Schedule, PiecewiseLinesAreNumpysInterpolation) {
  spec::ScheduleSpec schedule{.name = "piecewise", .boundaries = {1, 3, 5}, .factors = {0.5, 1, 0}, .lines = true};
  expect_rates(make_schedule(schedule, 0.4, 7, 1), {0.2, 0.2, 0.3, 0.4, 0.2, 0, 0});
}

// PolynomialLR(optimizer, 8, 2.0), lr=0.4
TEST(Schedule, PolynomialIsPyTorchs) {
  spec::ScheduleSpec schedule{.name = "polynomial", .power = 2};
  expect_rates(make_schedule(schedule, 0.4, 8, 1), {0.4, 0.30625, 0.225, 0.15625, 0.1, 0.05625, 0.025, 0.00625, 0, 0});
}

TEST(Schedule, PolynomialEndsAtItsEnd) {
  EXPECT_DOUBLE_EQ(polynomial(5, 10, 0.4, 1, 0.5), 0.3);
  EXPECT_DOUBLE_EQ(polynomial(10, 10, 0.4, 1, 0.5), 0.2);
}

// TensorFlow's documentation of linear_cosine_decay:
//   linear_decay = (decay_steps - global_step) / decay_steps
//   cosine_decay = 0.5 * (1 + cos(pi * 2 * num_periods * global_step / decay_steps))
//   decayed = (alpha + linear_decay) * cosine_decay + beta
TEST(Schedule, LinearCosineIsTensorFlows) {
  const LinearCosineOptions options{.periods = 1.5, .alpha = 0.1, .beta = 0.01};
  for (int64_t step = 0; step <= 20; ++step) {
    const double linear = (20.0 - static_cast<double>(step)) / 20;
    const double wave = 0.5 * (1 + std::cos(std::numbers::pi * 2 * 1.5 * static_cast<double>(step) / 20));
    EXPECT_NEAR(linear_cosine(step, 20, 0.4, options), 0.4 * ((0.1 + linear) * wave + 0.01), 1e-12) << step;
  }
  EXPECT_NEAR(linear_cosine(10, 20, 1, {}), 0.5 * 0.5 + 0.001, 1e-12) << "by hand, at half time";
}

TEST(Schedule, WarmUpComesBeforeEachOtherSchedule) {
  for (const std::string name : {"step", "exponential", "piecewise", "polynomial", "linear_cosine", "plateau"}) {
    spec::ScheduleSpec schedule{.name = name, .warmup_epochs = 1, .boundaries = {3}};
    const auto rate = make_schedule(schedule, 0.4, 64, 4);
    EXPECT_NEAR(rate(0), 0.1, 1e-12) << name;
    EXPECT_GT(rate(3), rate(2)) << name;
  }
}

/// The factor after each epoch of the measured values.
std::vector<double> plateau_factors(const spec::ScheduleSpec& schedule, const std::vector<double>& values) {
  std::vector<double> factors;
  PlateauState state;
  for (const double value : values) {
    EpochMetrics metrics;
    if (schedule.monitor == "test_loss")
      metrics.test_loss = value;
    else
      metrics.test_metrics = {{"accuracy", value}};
    state = after_epoch(state, schedule, metrics);
    factors.push_back(state.factor);
  }
  return factors;
}

// ReduceLROnPlateau(optimizer, "min", factor=0.5, patience=1, threshold=0.01, cooldown=2, min_lr=0.2 of the rate)
TEST(Plateau, IsPyTorchs) {
  const spec::ScheduleSpec schedule{.name = "plateau",
                                    .factor = 0.5,
                                    .end_factor = 0.2,
                                    .monitor = "test_loss",
                                    .patience = 1,
                                    .threshold = 0.01,
                                    .cooldown = 2};
  const std::vector<double> losses{1,    0.9,  0.89, 0.895, 0.8899, 0.88995, 0.7,  0.71,
                                   0.72, 0.73, 0.74, 0.75,  0.76,   0.77,    0.78, 0.79};
  EXPECT_EQ(plateau_factors(schedule, losses),
            (std::vector<double>{1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2}));
}

// ReduceLROnPlateau(optimizer, "max", factor=0.1, patience=2, threshold=0.01)
TEST(Plateau, OfAccuracyIsPyTorchs) {
  const spec::ScheduleSpec schedule{
      .name = "plateau", .factor = 0.1, .monitor = "test_accuracy", .patience = 2, .threshold = 0.01};
  EXPECT_EQ(plateau_factors(schedule, {0.5, 0.6, 0.601, 0.602, 0.7, 0.6, 0.6, 0.6, 0.6}),
            (std::vector<double>{1, 1, 1, 1, 1, 1, 1, 0.1, 0.1}));
}

// ReduceLROnPlateau(optimizer, "min", factor=0.5, patience=1): NaN is a bad epoch and no best one.
TEST(Plateau, WhatIsNoNumberIsNoBestValue) {
  const spec::ScheduleSpec schedule{.name = "plateau", .factor = 0.5, .monitor = "test_loss", .patience = 1};
  const double nan = std::nan("");
  EXPECT_EQ(plateau_factors(schedule, {nan, 1, 0.9, nan, nan, 0.8}), (std::vector<double>{1, 1, 1, 1, 0.5, 0.5}));
}

TEST(Plateau, EpochsThatWereNotMeasuredDoNotCount) {
  const spec::ScheduleSpec schedule{.name = "plateau", .patience = 0};
  PlateauState state{.factor = 0.5, .best = 1.0, .bad_epochs = 0, .cooldown = 1};
  EXPECT_EQ(after_epoch(state, schedule, {}), state);
}

TEST(Schedule, OneCycleOfASingleStepIsFinite) {
  const double rate = one_cycle(0, 1, 0.2, {});
  EXPECT_GT(rate, 0);
  EXPECT_LE(rate, 0.2);
}

TEST(Schedule, NeverAboveThePeakNorBelowZero) {
  for (const std::string name :
       {"constant", "cosine", "one_cycle", "exponential", "piecewise", "plateau", "polynomial", "step"}) {
    spec::ScheduleSpec schedule{.name = name, .boundaries = {1, 2}};
    const auto rate = make_schedule(schedule, 0.3, 37, 7);
    for (int64_t step = 0; step < 37; ++step) {
      EXPECT_GE(rate(step), 0) << name << " " << step;
      EXPECT_LE(rate(step), 0.3 + 1e-12) << name << " " << step;
    }
  }
}

}  // namespace
}  // namespace weft::step
