// Which ranks write a state, and give it to others.
#pragma once

#include <vector>

#include "weft/step/states/state_sharding.h"

namespace weft::step {

/// The ranks that hold its parts, in the order of these, and rising: of several with the same part the first.
std::vector<int> holders_of(const StateSharding& sharding, const Mesh& mesh);

}  // namespace weft::step
