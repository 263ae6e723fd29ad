// What making batches costs the steps: waits for loaders that are not fast enough, and the cores that they take.
#pragma once

#include <cstdint>

#include "weft/data/load/loader.h"
#include "weft/predict/host_cores.h"

namespace weft::predict {

/// Seconds that one core needs for a sample, from some that are made here and now, for up to about `most_seconds`.
double measure_loading(const data::Dataset& dataset, data::LoaderOptions options, double most_seconds);

/// Seconds by which a step that computes for `step_seconds` becomes longer. `core_seconds`: of a rank's samples of a
/// step. Cores that no step computes on load beside it; else loading takes its part of the cores, and threads of a step
/// wait for the one that was held up.
double loading_seconds(double core_seconds, double step_seconds, const HostCores& host);

}  // namespace weft::predict
