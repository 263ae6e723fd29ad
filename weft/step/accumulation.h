// Steps that take several batches. The slots "gradient_sum" collect the mean of the gradients of all batches. A
// process that trains alone updates the weights from them in a graph of its own. With several ranks, one graph does
// all, and its last run in a step exchanges and updates. Each mean can therefore travel as soon as that run has added
// to it, even into the next step.
#pragma once

#include <vector>

#include "weft/graph/graph.h"
#include "weft/step/optimizers/optimizer.h"

namespace weft::step {

/// A scalar input: 1 in the last batch of a step that is one graph, 0 in the others.
inline constexpr const char* kSumComplete = "sum_complete";

/// For a graph without the update; returns the slots.
std::vector<SlotSpec> accumulate_gradients(Graph& graph, const std::vector<TrainedParameter>& trained);

/// For the graph of the whole step: replaces each gradient by the mean over all its batches.
std::vector<SlotSpec> accumulate_before_exchange(Graph& graph, std::vector<TrainedParameter>& trained);

/// Returns the graph with each sum moved to where its gradient is computed.
Graph accumulate_early(const Graph& graph);

}  // namespace weft::step
