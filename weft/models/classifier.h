// What the heads of the older image networks share.
#pragma once

#include <string>

#include "weft/graph/graph.h"

namespace weft::models {

/// [N,C,H,W] -> [N,C,size,size]: row i is the mean of rows floor(i H / size) to ceil((i + 1) H / size), likewise for
/// columns, as PyTorch's adaptive_avg_pool2d; x itself where it has that size.
ValueId adaptive_avg_pool(Graph& graph, ValueId x, int64_t size, const std::string& name);

}  // namespace weft::models
