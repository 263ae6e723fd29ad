// Which kind of work an op is, for reports that sum over many ops.
#pragma once

#include <string_view>

#include "weft/graph/op_def.h"

namespace weft::report {

/// "convolutions, forward", "matrix products", "normalisation", ...; "other" for what has no class. It lives as long as
/// the op.
std::string_view class_of(const OpDef& op);

}  // namespace weft::report
