// Simulated tasks as a picture: what each stream does when.
#pragma once

#include <string>
#include <vector>

#include "weft/plot/charts.h"
#include "weft/simulate/task_graph.h"

namespace weft::cli {

/// Tasks of no stream, which are messages on their way, get a row of their own. Tasks that take no time are left out.
plot::Timeline simulated_timeline(const simulate::TaskGraph& tasks, const std::vector<simulate::Span>& spans,
                                  const std::string& title);

}  // namespace weft::cli
