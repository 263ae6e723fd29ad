// What a step draws at random on ranks that divide the batch: for each element as one rank with the whole batch would.
#pragma once

#include "weft/graph/graph.h"

namespace weft::step {

/// The graph of one of so many ranks, each of which has that part of the batch. Its dropouts draw by the place that an
/// element has in the whole batch; where none is known, each rank draws other numbers.
Graph draw_by_global_index(const Graph& graph, int ranks);

}  // namespace weft::step
