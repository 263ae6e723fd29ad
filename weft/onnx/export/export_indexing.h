// The ops that look elements up, place them, count and sort them, as operators of ONNX.
#pragma once

#include "weft/onnx/export/export_operators.h"

namespace weft::onnx {

std::map<std::string, ExportNode> indexing_exports();

}  // namespace weft::onnx
