// The end of an epoch: what is recorded of it, and its evaluation.
#pragma once

#include <vector>

#include "weft/library/metric.h"
#include "weft/train/evaluate.h"
#include "weft/train/fit.h"

namespace weft::train {

/// What the training steps of the epoch that ends at `position` have shown. `has_classes`: steps count right answers.
step::EpochMetrics metrics_of_epoch(const step::Position& position, const data::DatasetInfo& info, const State& state,
                                    bool has_classes);

/// Of `state`, or of the average of its weights where the recipe keeps one, on `data`. Not finished where a stop was
/// requested.
Evaluation evaluate_epoch(const FitInputs& inputs, State& state, data::Loader& data, const Hooks& hooks,
                          const std::vector<MetricEntry>& metrics);

}  // namespace weft::train
