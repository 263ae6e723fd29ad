// A rank's part of a tensor that nobody holds as a whole.
#pragma once

#include <cstdint>
#include <functional>

#include "weft/graph/sharding.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// Writes the elements [first, first + count) of the whole tensor to `values`.
using FillRange = std::function<void(float* values, int64_t first, int64_t count)>;

/// What part_of() gives of a whole f32 tensor that `fill` would write. It is called for ranges that rise and do not
/// overlap. Of a tensor with several splits it writes the part of the last split's rank first.
Tensor filled_part(const Sharding& sharding, int64_t coordinate, const FillRange& fill);

}  // namespace weft
