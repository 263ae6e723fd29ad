// Batch norm over the batch of all ranks: each normalises its part by the mean and variance of the whole.
#pragma once

#include "weft/graph/graph.h"

namespace weft::step {

/// The graph of a step, gradients included, on one of several ranks with equal parts of each batch, with its batch
/// norms and their running averages over all parts. Forward: every part's mean m and variance v give the mean M of the
/// m and the mean of v + (m - M)^2, in two exchanges of a number per channel, so that nothing cancels (Chan, Golub and
/// LeVeque 1983). Backward: batch_norm_backward knows no more than its own part's sums s and p (the gradients of shift
/// and scale), and with S and P, their means over the ranks,
///   dx += scale / (n deviation) ((s - S) + (x - M) / deviation (p - P))      n: numbers per channel of the part
/// makes of its result what a batch norm of the whole batch gives. Error(usage) where something else than batch norm
/// and running averages depends on the statistics.
Graph synchronise_batch_norm(const Graph& graph, int ranks);

}  // namespace weft::step
