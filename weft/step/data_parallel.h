// A training step on one of several ranks. Each rank computes the gradients of its part of the batch; all continue
// with the means, so that their states stay equal.
#pragma once

#include <vector>

#include "weft/graph/graph.h"
#include "weft/spec/run_spec.h"

namespace weft::step {

/// The scalar input and the output by which ranks agree to stop: the output counts the ranks whose input is 1.
inline constexpr const char* kStop = "stop";
/// Output: the loss of this rank's part of the batch alone.
inline constexpr const char* kOwnLoss = "own_loss";
/// Output: the sum over one gradient of this rank's part of the batch; not finite where that gradient is not. Missing
/// where no parameter is a vector.
inline constexpr const char* kOwnGradient = "own_gradient";

/// Whether a step may leave updates to the next one (passes::Ranks::may_defer). It may not where updates are a graph of
/// their own, nor where the loop reads the result of an update after each step.
bool may_defer_updates(const spec::RunSpec& spec);

/// The most batches whose gradients a rank adds before it exchanges them (passes::Ranks::batches). 0: ranks add those
/// of different numbers of batches, or bits depend on which are added first.
int64_t batches_per_exchange(const spec::RunSpec& spec);

/// Returns the graph with statistics averaged over the ranks before they enter running averages.
Graph average_statistics(const Graph& graph);

/// Adds the input and the output kStop, of the ranks that divide the batch, where there are several.
void add_stop(Graph& graph, int ranks = 2);

/// Adds the output kOwnGradient for the vector whose gradient is computed last: a value that is not finite on the way
/// back from the loss reaches all later gradients.
void add_own_gradient(Graph& graph, const std::vector<ValueId>& gradients);

}  // namespace weft::step
