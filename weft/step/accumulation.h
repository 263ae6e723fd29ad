// Steps that take several batches: the gradients of each are added to their mean, which the slots "gradient_sum"
// collect. Alone, a process updates the weights from these in a graph of its own. One of several ranks has all in one
// graph, whose last run of a step exchanges and updates: so each gradient's mean travels from the moment in which that
// run has added to it, and may do so into the next step.
#pragma once

#include <vector>

#include "weft/graph/graph.h"
#include "weft/step/optimizers/optimizer.h"

namespace weft::step {

/// The scalar input that is 1 in the last batch of a step that is one graph, and 0 in the others.
inline constexpr const char* kSumComplete = "sum_complete";

/// For a graph without the update; returns the slots.
std::vector<SlotSpec> accumulate_gradients(Graph& graph, const std::vector<TrainedParameter>& trained);

/// For the graph of the whole step: makes the gradients those of all its batches.
std::vector<SlotSpec> accumulate_before_exchange(Graph& graph, std::vector<TrainedParameter>& trained);

/// The graph with the sums moved to where the gradients are there.
Graph accumulate_early(const Graph& graph);

}  // namespace weft::step
