// Ops that move, cut, repeat or make numbers, as operators of ONNX. Sizes that depend on the batch are computed from
// the input's shape.
#pragma once

#include "weft/onnx/export/emitter.h"

namespace weft::onnx {

void export_reshape(Emitter& emitter, NodeId id);
void export_slice(Emitter& emitter, NodeId id);
void export_broadcast(Emitter& emitter, NodeId id);
void export_constant(Emitter& emitter, NodeId id);
void export_constant_tensor(Emitter& emitter, NodeId id);
void export_iota(Emitter& emitter, NodeId id);
void export_pad(Emitter& emitter, NodeId id);
void export_cast(Emitter& emitter, NodeId id);
void export_transpose(Emitter& emitter, NodeId id);
void export_causal_mask(Emitter& emitter, NodeId id);

}  // namespace weft::onnx
