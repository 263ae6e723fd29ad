// The parts of a tensor that ranks share: how many there are, and who holds them. Where several dimensions are split,
// each has an axis of its own. Where elements are split as well, the dimensions are first: a part of them is split by
// its elements again. Parts are numbered (coordinate_of() of a rank); those of the last dimension follow each other.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/graph/sharding.h"

namespace weft {

/// Into how many parts the tensor is split: 1 where nothing splits it. At most as many as there can be ranks.
int64_t parts_of(const Sharding& sharding);

/// Whether no axis splits the tensor twice: one that was read from a file may say so.
bool names_each_axis_once(const Sharding& sharding);

/// In how many blocks that dimension is split.
int64_t blocks_of(const Sharding& sharding, int dimension);

/// How the elements are split of what the dimensions that are split leave to a rank.
Sharding flat_of_part(const Sharding& sharding);

/// The ranks that hold the parts, in the order of these: all of them with the coordinates of `first` on the axes that
/// do not split the tensor.
std::vector<int> holders_of(const Sharding& sharding, const Mesh& mesh, int64_t first);

}  // namespace weft
