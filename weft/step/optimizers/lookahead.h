// The step size of the slow weights in look-ahead.
#pragma once

#include <cstdint>

#include "weft/spec/run_spec.h"

namespace weft::step {

/// The share in a synchronisation after the update `step`, counted from 0. It goes from alpha towards end_alpha with
/// the done part of the run, raised to `power`.
double lookahead_alpha(const spec::LookaheadSpec& spec, int64_t step, int64_t total_steps);

}  // namespace weft::step
