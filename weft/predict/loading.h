// What making batches costs the steps: waits for loaders that are not fast enough, and the cores that they take.
#pragma once

#include <cstdint>

#include "weft/data/load/loader.h"

namespace weft::predict {

/// Seconds that one core needs for a sample, from some that are made here and now, for up to about `most_seconds`.
double measure_loading(const data::Dataset& dataset, data::LoaderOptions options, double most_seconds);

/// The share of a host that loads and computes.
struct LoadingPlace {
  int64_t cores = 1;    // of the host
  int64_t threads = 1;  // of each rank's steps
  int64_t ranks = 1;    // on the host
};
/// Seconds by which a step that computes for `step_seconds` becomes longer. `core_seconds`: of a rank's samples of a
/// step. Cores that no step computes on load beside it; else loading takes its part of the cores, and threads of a step
/// wait for the one that was held up.
double loading_seconds(double core_seconds, double step_seconds, const LoadingPlace& place);

}  // namespace weft::predict
