// Learning-rate schedules: pure functions of (step, total) that take the peak rate. Steps count from 0 to total - 1.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "weft/library/entries.h"
#include "weft/spec/course.h"
#include "weft/spec/run_spec.h"

namespace weft::step {

/// rate * (1 + cos(pi * step / total)) / 2: from the rate at step 0 towards 0 at step `total`
/// (Loshchilov and Hutter 2017, eq. 5 without restarts; as torch.optim.lr_scheduler.CosineAnnealingLR with eta_min 0).
double cosine(int64_t step, int64_t total, double rate);

struct OneCycleOptions {
  double rise = 0.3;              // fraction of the steps before the peak
  bool linear_annealing = false;  // else cosine
  double start_divisor = 25;      // first rate = peak / start_divisor
  double end_divisor = 1e4;       // last rate = first rate / end_divisor
};
/// Rises to the peak, then falls to nearly nothing (Smith and Topin 2018); as torch.optim.lr_scheduler.OneCycleLR with
/// two phases, pct_start = rise, div_factor = start_divisor, final_div_factor = end_divisor. The momentum stays as it
/// is (OneCycleLR with cycle_momentum=False) unless it has a schedule of its own.
double one_cycle(int64_t step, int64_t total, double peak, const OneCycleOptions& options);

/// The momentum of one_cycle: falls from `high` to `low` while the rate rises, then rises again; as OneCycleLR with
/// cycle_momentum, max_momentum = high and base_momentum = low.
double one_cycle_momentum(int64_t step, int64_t total, double low, double high, const OneCycleOptions& options);

/// The factor (step + 1) / warmup_steps of a linear rise, 1 from step warmup_steps - 1 on (Goyal et al. 2017, section
/// 2.2; as torch.optim.lr_scheduler.LinearLR with start_factor 1 / warmup_steps).
double warm_up(int64_t step, int64_t warmup_steps);

/// rate * factor^(step / steps_per_factor), the exponent a real number (as torch.optim.lr_scheduler.ExponentialLR with
/// gamma = factor, stepped once per steps_per_factor) or, in `stairs`, rounded down (as StepLR).
double exponential(double step, double steps_per_factor, double rate, double factor, bool stairs);

/// rate * factors[i] with i the number of boundaries at or before `step`; without factors, rate * factor^i (as
/// torch.optim.lr_scheduler.MultiStepLR).
double piecewise(double step, std::span<const double> boundaries, std::span<const double> factors, double factor,
                 double rate);
/// Straight lines through the points (boundary, rate * factor), level outside of them (as numpy.interp).
double piecewise_lines(double step, std::span<const double> boundaries, std::span<const double> factors, double rate);

/// end + (rate - end) * (1 - step / total)^power with end = rate * end_factor (as
/// torch.optim.lr_scheduler.PolynomialLR where that is 0).
double polynomial(int64_t step, int64_t total, double rate, double power, double end_factor);

struct LinearCosineOptions {
  double periods = 0.5, alpha = 0, beta = 0.001;
};
/// rate * ((alpha + 1 - x) * (1 + cos(2 pi * periods * x)) / 2 + beta) with x = step / total (Bello et al. 2017,
/// "Neural optimizer search with reinforcement learning", section 4; as tf.train.linear_cosine_decay).
double linear_cosine(int64_t step, int64_t total, double rate, const LinearCosineOptions& options);

// Helpers for the entries of schedules.

/// The linear rise over schedule.warmup_epochs, then fall(step, steps) over the remaining steps, with `step` counted
/// from the end of the rise.
RateOfStep after_rise(const spec::ScheduleSpec& schedule, double learning_rate, const spec::Course& course,
                      std::function<double(int64_t step, int64_t steps)> fall);
/// `rate`, counted from the start of the run, times the linear rise.
RateOfStep with_rise(const spec::ScheduleSpec& schedule, const spec::Course& course, RateOfStep rate);

OneCycleOptions one_cycle_options(const spec::ScheduleSpec& schedule);
/// By schedule.boundaries, factor, factors and lines; without a rise.
RateOfStep piecewise_rate(const spec::ScheduleSpec& schedule, double learning_rate, const spec::Course& course);

/// Rate by step for a run, from the entry that the schedule names. Error(usage) where there is no such entry. For
/// `plateau` it gives only the warm-up: see plateau.h.
RateOfStep make_schedule(const spec::ScheduleSpec& schedule, double learning_rate, const spec::Course& course,
                         const Entries& entries = standard_entries());
/// For a run whose epochs are all alike.
RateOfStep make_schedule(const spec::ScheduleSpec& schedule, double learning_rate, int64_t total_steps,
                         int64_t steps_per_epoch);

/// Momentum by step.
RateOfStep make_momentum_schedule(const spec::RunSpec& spec, const spec::Course& course);

}  // namespace weft::step
