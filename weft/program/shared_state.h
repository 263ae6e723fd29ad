// The State of a run on several ranks: all take over the first rank's state; a fingerprint compares them.
#pragma once

#include <string>

#include "weft/comm/communicator.h"
#include "weft/device/state.h"

namespace weft::program {

/// Gives every rank the first rank's tensors, in plain layouts, and no others. Null `ranks`: nothing happens.
void take_first_state(comm::Communicator* ranks, State& state);

/// Of names, shapes and numbers, whatever the layouts; hexadecimal.
std::string fingerprint_of(const State& state);

}  // namespace weft::program
