// The State of a run on several ranks: the first one's, taken over by the others, and a fingerprint to compare it by.
#pragma once

#include <string>

#include "weft/comm/communicator.h"
#include "weft/device/state.h"

namespace weft::program {

/// Afterwards every rank has the first one's tensors, in plain layouts, and no others. Null: nothing happens.
void take_first_state(comm::Communicator* ranks, State& state);

/// Of names, shapes and numbers, whatever the layouts; hexadecimal.
std::string fingerprint_of(const State& state);

}  // namespace weft::program
