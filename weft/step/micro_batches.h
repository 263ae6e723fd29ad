// What belongs to the micro-batches of a run that is a pipeline.
#pragma once

#include <cstdint>
#include <string>

#include "weft/spec/run_spec.h"

namespace weft::step {

/// The slot of the sum of a gradient over the micro-batches of a step. It means nothing between steps, and checkpoints
/// omit it.
inline constexpr const char* kMicroSumSlot = "micro_sum";

inline bool is_pipelined(const spec::RunSpec& spec) { return spec.mesh.pipeline > 1; }
/// 1 without a pipeline.
inline int64_t micro_batches_of(const spec::RunSpec& spec) {
  return is_pipelined(spec) ? spec.pipeline.micro_batches : 1;
}

/// Rows of a micro-batch, of those that a rank takes of a batch. Error(usage) where the micro-batches do not divide it.
int64_t rows_of_micro_batch(const spec::RunSpec& spec, int64_t rows);

}  // namespace weft::step
