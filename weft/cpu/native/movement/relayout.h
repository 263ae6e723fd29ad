// Two layouts of one tensor as a single walk: what a change of layout is.
#pragma once

#include <optional>
#include <vector>

#include "weft/cpu/native/movement/strided_copy.h"
#include "weft/tensor/layout.h"

namespace weft::native {

/// The dimensions of a walk through the second layout's memory from its start to its end: each axis cut where a block
/// of either layout begins, neighbours that stay neighbours merged. nullopt where a block is not full or the blocks of
/// the two layouts cut across each other.
std::optional<std::vector<CopyDimension>> relayout_dimensions(const Shape& shape, const Layout& from, const Layout& to);

}  // namespace weft::native
