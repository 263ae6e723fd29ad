// The memory that a rank will need, by what it is for.
#pragma once

#include <cstdint>
#include <string>

#include "weft/predict/step_time.h"

namespace weft::predict {

/// Bytes while the step's fullest node runs.
struct MemoryPrediction {
  int64_t states = 0;       // weights, statistics and states of the optimiser, of this rank
  int64_t activations = 0;  // kept for the backward part, or computed again for it
  int64_t gradients = 0;    // and temporaries of updates
  int64_t buffers = 0;      // workspaces, gaps between tensors, batches, loaders, caches of pictures
  int64_t file = 0;         // on disk
  std::string at = {};      // the node

  int64_t total() const { return states + activations + gradients + buffers; }
  friend bool operator==(const MemoryPrediction&, const MemoryPrediction&) = default;
};

/// `state_bytes`: of a rank; `beside`: of all that is planned beside arena, states and the batch of the graph.
MemoryPrediction predict_memory(const StepGraphs& graphs, int64_t state_bytes, int64_t beside);

}  // namespace weft::predict
