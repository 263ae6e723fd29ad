// Learning-rate schedules: pure functions of (step, total) that take the peak rate. Steps count from 0 to total - 1.
#pragma once

#include <cstdint>
#include <functional>

#include "weft/train/run_spec.h"

namespace weft::train {

/// rate * (1 + cos(pi * step / total)) / 2: from the rate at step 0 towards 0 at step `total`
/// (Loshchilov and Hutter 2017, eq. 5 without restarts; as torch.optim.lr_scheduler.CosineAnnealingLR with eta_min 0).
double cosine(int64_t step, int64_t total, double rate);

struct OneCycleOptions {
  double rise = 0.3;              // fraction of the steps before the peak
  bool linear_annealing = false;  // else cosine
  double start_divisor = 25;      // first rate = peak / start_divisor
  double end_divisor = 1e4;       // last rate = first rate / end_divisor
};
/// Up to the peak, then down to nearly nothing (Smith and Topin 2018); as torch.optim.lr_scheduler.OneCycleLR with two
/// phases, pct_start = rise, div_factor = start_divisor, final_div_factor = end_divisor. The momentum stays as it is
/// (OneCycleLR with cycle_momentum=False).
double one_cycle(int64_t step, int64_t total, double peak, const OneCycleOptions& options);

/// The factor (step + 1) / warmup_steps of a linear rise, 1 from step warmup_steps - 1 on (Goyal et al. 2017, section
/// 2.2; as torch.optim.lr_scheduler.LinearLR with start_factor 1 / warmup_steps).
double warm_up(int64_t step, int64_t warmup_steps);

/// Rate by step for a run. After a warm-up, cosine falls over the remaining steps.
std::function<double(int64_t step)> make_schedule(const ScheduleSpec& schedule, double learning_rate,
                                                  int64_t total_steps, int64_t steps_per_epoch);

}  // namespace weft::train
