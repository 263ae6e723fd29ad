// In which order a stage of a pipeline computes its micro-batches: GPipe (Huang et al. 2019), one forward one backward
// (Narayanan et al. 2019), its interleaved form (Narayanan et al. 2021), zero bubble (Qi et al. 2023).
#pragma once

#include <vector>

#include "weft/simulate/transformer.h"

namespace weft::simulate {

struct PipelineStep {
  /// `backward` is both parts, unless the schedule moves the gradients of weights.
  enum class Kind { forward, backward, weights } kind = Kind::forward;
  int micro_batch = 0;
  int chunk = 0;  // of the stage's layers
};

/// Per stage. `forward`, `backward`, `weights`: seconds of a micro-batch on a stage, by which zero-bubble schedules
/// fill gaps. Error(usage) where interleaved stages do not divide the micro-batches.
std::vector<std::vector<PipelineStep>> pipeline_order(PipelineSchedule schedule, int stages, int micro_batches,
                                                      int chunks, double forward, double backward, double weights);

/// Whether gradients of weights are steps of their own.
inline bool splits_backward(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zero_bubble_1 || schedule == PipelineSchedule::zero_bubble_2;
}

}  // namespace weft::simulate
