// How far the slow weights of look-ahead go.
#pragma once

#include <cstdint>

#include "weft/spec/run_spec.h"

namespace weft::step {

/// In a synchronisation after the update `step`, counted from 0: from alpha towards end_alpha, as far as the part of
/// the run that is done then, to the power, says.
double lookahead_alpha(const spec::LookaheadSpec& spec, int64_t step, int64_t total_steps);

}  // namespace weft::step
