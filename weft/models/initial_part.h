// The values with which a parameter starts, one at a time, for a rank that keeps a part of it.
#pragma once

#include <cstdint>

#include "weft/base/rng.h"
#include "weft/graph/sharding.h"
#include "weft/models/model.h"

namespace weft::models {

/// The next value of an initializer that draws each element by itself: uniform, normal, and where identity draws.
float draw(RandomStream& stream, const Initializer& initializer);

/// Bitwise the part of initialize()'s tensor that part_of() gives. What is drawn element by element never stands in
/// memory as a whole.
Tensor initialize_part(const ParameterSpec& parameter, uint64_t seed, const Sharding& sharding, int64_t coordinate);

}  // namespace weft::models
