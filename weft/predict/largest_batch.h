// The largest batch whose step fits the memory of each rank.
#pragma once

#include "weft/predict/planned_run.h"

namespace weft::predict {

struct LargestBatch {
  int64_t batch = 0;             // of all ranks, that are computed at a time
  MemoryPrediction memory = {};  // with it
  double has_bytes = 0;          // a rank
  int64_t plans = 0;             // that were made
};

/// By doubling, then by bisection, between plans; as batches grow, so does what they take. Where model.spec has a
/// memory_limit, activations are computed twice to keep to it. Error(usage) where not even the smallest batch that the
/// ranks can share fits, with the least memory that would do.
LargestBatch largest_batch(const Library& library, const PlannedModel& model, const Strategy& strategy,
                           const Place& place);

}  // namespace weft::predict
