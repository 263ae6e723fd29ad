// In which order a stage of a pipeline computes its micro-batches: GPipe (Huang et al. 2019), one forward one backward
// (Narayanan et al. 2019), its interleaved form (Narayanan et al. 2021), zero bubble (Qi et al. 2023), also in a V (Qi
// et al. 2024). Those of passes/ranks/pipeline_schedule.h are the same data that weft itself runs. GPipe's backward
// goes through the micro-batches in reverse here, and the orders zb1 and zb2 are searched by the times of a stage, as
// the published runs had them.
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
  return schedule != PipelineSchedule::one_forward_one_backward && schedule != PipelineSchedule::gpipe;
}

/// Which chunk of which stage comes when, for the layers.
passes::StagePlacement placement_of(PipelineSchedule schedule, int stages, int chunks);

}  // namespace weft::simulate
