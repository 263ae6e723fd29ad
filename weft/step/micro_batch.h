// The step of one micro-batch: forward and backward, without an update.
#pragma once

#include <string>
#include <vector>

#include "weft/graph/gradient_origins.h"
#include "weft/graph/graph.h"
#include "weft/step/optimizers/optimizer.h"

namespace weft::step {

/// All stages of a pipeline together.
struct MicroBatch {
  Graph graph;  // forward and backward; its outputs are summed over the micro-batches, or averaged
  std::vector<TrainedParameter> trained;
  GradientOrigins origins;
  std::vector<std::string> statistics;  // that have an average where the spec asks for one (ema)
};

}  // namespace weft::step
