// The average of the weights, where the recipe asks for it.
#pragma once

#include <cstdint>

#include "weft/device/state.h"
#include "weft/spec/run_spec.h"

namespace weft::step {

inline constexpr const char* kEmaSlot = "ema";

/// The decay of the update that follows `step` others: with warm-up min(decay, (1 + step) / (10 + step)).
double ema_decay(const spec::EmaSpec& spec, int64_t step);

/// The state with averages in place of the weights and without the optimiser's slots. It shares the memory of `state`:
/// values follow, and layouts may be changed.
State averaged_state(const State& state);

}  // namespace weft::step
