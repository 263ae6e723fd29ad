// What a rank keeps of the states that ranks share, for reports.
#pragma once

#include <string>

#include "weft/graph/graph.h"

namespace weft::report {

/// "states of this rank: 1.2 MB of weights, 2.4 MB of the optimiser; shared by 2 ranks: 4.8 MB, whole 0.1 MB\n"; empty
/// where nothing is shared.
std::string shared_states_text(const Graph& graph);

}  // namespace weft::report
