// How ops of weft are written as operators of ONNX: a table, by the op's name.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "weft/onnx/export/emitter.h"

namespace weft::onnx {

/// Adds the operators that compute the node's outputs, under their names.
using ExportNode = std::function<void(Emitter&, NodeId)>;

const std::map<std::string, ExportNode>& export_operators();

}  // namespace weft::onnx
