// In which order a stage of a pipeline computes its micro-batches: GPipe (Huang et al. 2019), one forward one backward
// (Narayanan et al. 2019), its interleaved form (Narayanan et al. 2021), zero bubble (Qi et al. 2023). The middle two
// are those that weft itself runs. GPipe's backward goes through the micro-batches in reverse here, and zero-bubble
// orders are searched by the times of a stage, as the published runs had them.
#pragma once

#include "weft/passes/ranks/pipeline_schedule.h"
#include "weft/simulate/transformer.h"

namespace weft::simulate {

/// Per stage. `forward`, `backward`, `weights`: seconds of a micro-batch on a stage, by which zero-bubble schedules
/// fill gaps. Error(usage) where interleaved stages do not divide the micro-batches.
passes::PipelineOrder pipeline_order(PipelineSchedule schedule, int stages, int micro_batches, int chunks,
                                     double forward, double backward, double weights);

/// Whether gradients of weights are steps of their own.
inline bool splits_backward(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zero_bubble_1 || schedule == PipelineSchedule::zero_bubble_2;
}

}  // namespace weft::simulate
