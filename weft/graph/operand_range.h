// How many operands an op takes.
#pragma once

#include <cstddef>
#include <utility>

#include "weft/graph/op_def.h"

namespace weft {

/// Fewest and most operands: a last "x?" may be absent, a last "x..." may be repeated.
inline std::pair<size_t, size_t> operand_range(const OpDef& op) {
  size_t fewest = op.inputs.size(), most = op.inputs.size();
  while (fewest > 0 && op.inputs[fewest - 1].ends_with("?")) --fewest;
  if (!op.inputs.empty() && op.inputs.back().ends_with("...")) most = 1 << 16;
  return {fewest, most};
}

}  // namespace weft
