// What is known of a rank's step in a pipeline before it runs.
#pragma once

#include <cstdint>
#include <string>

#include "weft/passes/ranks/pipeline_schedule.h"

namespace weft::step {

struct PipelineOutlook {
  std::string schedule;
  int rank = 0, ranks = 1;  // along the axis pipeline
  int micro_batches = 1;
  passes::PipelineSchedule order = {};  // of all ranks
  passes::PipelineTimes times = {};     // of the stages, by the cost model, and of links as all ranks take them
  passes::PipelineForecast forecast;    // by these times
  int64_t message_bytes = 0;            // of a micro-batch, from a stage to the next one on another rank, in the mean
  std::string cut;                      // a fingerprint of what all ranks must have decided alike
  int64_t sent_bytes = 0;               // by this rank, in each step, to the other stages
  int most_waiting = 0;                 // micro-batches whose activations this rank keeps at once
};

}  // namespace weft::step
