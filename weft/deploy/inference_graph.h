// Graphs as inference wants them: weights are constants, and nothing is there that no output reads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/graph/constant.h"
#include "weft/graph/graph.h"

namespace weft::deploy {

/// The graph with its parameters and states as constants. Inputs that nothing reads go; those that stay come in the
/// order of `inputs`, the others behind them. Error(usage) for a parameter without a value, and for a scalar input.
Graph with_constants(const Graph& graph, const std::map<std::string, Constant>& values,
                     const std::vector<std::string>& inputs = {});

}  // namespace weft::deploy
