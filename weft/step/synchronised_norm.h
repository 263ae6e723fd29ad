// Batch norm over the batch of all ranks: each rank normalises its part by the mean and variance of the whole batch.
#pragma once

#include "weft/graph/graph.h"

namespace weft::step {

/// Returns the graph of a step, gradients included, whose batch norms and running averages cover the parts of all
/// ranks. All parts must be equal. Forward: each part has mean m and variance v; two exchanges of a number per channel
/// give the mean M of the m and the mean of v + (m - M)^2, so that nothing cancels (Chan, Golub and LeVeque 1983).
/// Backward: batch_norm_backward knows only its own part's sums s and p (the gradients of shift and scale). With S and
/// P, their means over the ranks, the term
///   dx += scale / (n deviation) ((s - S) + (x - M) / deviation (p - P))      n: numbers per channel of the part
/// turns its result into that of a batch norm over the whole batch. Error(usage) where something other than batch norm
/// and running averages depends on the statistics.
Graph synchronise_batch_norm(const Graph& graph, int ranks);

}  // namespace weft::step
