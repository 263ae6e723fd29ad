// Changes of layout, with or without a change of type.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/runtime/kernel.h"
#include "weft/runtime/native/strided_copy.h"
#include "weft/tensor/layout.h"

namespace weft::native {

/// The dimensions of a walk through the second layout's memory from its start to its end: each axis cut where a block
/// of either layout begins, neighbours that stay neighbours merged. nullopt where a block is not full or the blocks of
/// the two layouts cut across each other.
std::optional<std::vector<CopyDimension>> relayout_dimensions(const Shape& shape, const Layout& from, const Layout& to);

/// A cast between f32 and bf16 from one layout to another.
std::unique_ptr<Kernel> make_cast_between_layouts(const NodeSignature& node, const KernelOptions& options, Isa isa,
                                                  std::string& why_not);

}  // namespace weft::native
