// What everything that reads an ONNX model wants done first: weights and operators then stand where they are looked
// for, however the file writes them.
#pragma once

#include "weft/onnx/file/model.h"

namespace weft::onnx {

/// Functions are expanded, and operators that ONNX Runtime adds become ONNX's. What a `Constant` holds becomes an
/// initializer under the same name, and what reads an Identity of an initializer reads that itself. Doing it twice
/// changes nothing more.
/// Error(usage) for operators newer than those that weft knows, and for an input of a type that weft has not;
/// Error(data) where two nodes write one value.
Model normalize(Model model);

/// The last step of it.
void skip_identities(OnnxGraph& graph);

}  // namespace weft::onnx
