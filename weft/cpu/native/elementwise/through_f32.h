// f16 where no kernel computes in it: the best kernel of the same node in f32, on widened copies in its workspace.
#pragma once

#include "weft/base/isa.h"
#include "weft/device/kernel.h"

namespace weft::native {

/// The node with operands and results of f32 in the place of those of f16.
NodeSignature in_f32(NodeSignature node);
bool has_f16(const NodeSignature& node);

/// After the candidates that each op of the registry which may compute in f16 has so far: one that makes what they make
/// in f32, and rounds its results once.
void add_through_f32(KernelTable& table, const OpRegistry& registry, Isa isa);

}  // namespace weft::native
