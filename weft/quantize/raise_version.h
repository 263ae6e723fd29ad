// A model in a newer version of ONNX's operators: integers of 4 and 2 bits are of newer ones than most models.
#pragma once

#include <cstdint>

#include "weft/onnx/file/model.h"

namespace weft::quantize {

/// Of a normalised model. Converts the nodes, those of subgraphs too, that the version reads otherwise than the model's
/// own, of 13 or newer; nothing where that is no older. Error(usage) that names a node which cannot be converted.
void raise_version(onnx::Model& model, int64_t version);

}  // namespace weft::quantize
