// What a training step on one rank of several shares with the others: each computes the gradients of its part of the
// batch, and all of them go on with the means, so that their states stay equal.
#pragma once

#include <vector>

#include "weft/graph/graph.h"
#include "weft/spec/run_spec.h"

namespace weft::step {

/// The scalar input and the output by which ranks agree to stop: the output counts the ranks whose input is 1.
inline constexpr const char* kStop = "stop";
/// Output: the loss of this rank's part of the batch alone.
inline constexpr const char* kOwnLoss = "own_loss";
/// Output: the sum of one of the gradients of this rank's part of the batch alone, not finite where that is not.
/// Missing where no parameter is a vector.
inline constexpr const char* kOwnGradient = "own_gradient";

/// Whether a step may leave updates to the next one (passes::Ranks::may_defer): not where they are a graph of their
/// own, nor where the loop reads after each step what an update has done.
bool may_defer_updates(const spec::RunSpec& spec);

/// The graph with running averages of what is averaged over the ranks first.
Graph average_statistics(const Graph& graph);

/// Adds the input and the output kStop.
void add_stop(Graph& graph);

/// Adds the output kOwnGradient, of the vector among the gradients that is computed last: what is not finite on the way
/// back from the loss comes into all that follows.
void add_own_gradient(Graph& graph, const std::vector<ValueId>& gradients);

}  // namespace weft::step
