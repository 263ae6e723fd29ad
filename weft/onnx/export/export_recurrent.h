// Recurrent layers as ONNX's LSTM and GRU. weft's ops take the inputs' product with their weights; ONNX's operators
// make it themselves, so the export finds the product and its weights, and puts the gates in ONNX's order.
#pragma once

#include "weft/onnx/export/emitter.h"

namespace weft::onnx {

void export_lstm(Emitter& emitter, NodeId id);
void export_gru(Emitter& emitter, NodeId id);

}  // namespace weft::onnx
