// Loss and accuracy of a state over a whole data set.
#pragma once

#include <cstdint>
#include <functional>

#include "weft/data/loader.h"
#include "weft/runtime/state.h"
#include "weft/train/step_cache.h"

namespace weft::train {

struct Evaluation {
  double loss = 0;      // mean over the samples
  double accuracy = 0;  // in [0, 1]
  int64_t samples = 0;
  double seconds = 0;
  bool finished = true;  // false: stopped on request; the rest is of no use then
};

/// Runs every batch of the loader once; the last one, where it is smaller, on a plan of its own size. The state's
/// values stay as they are, its layouts may change: bind another executor again afterwards. `stop_requested`,
/// which may be empty, is asked before each batch.
Evaluation evaluate(StepCache& steps, State& state, data::Loader& loader,
                    const std::function<bool()>& stop_requested = {});

}  // namespace weft::train
