// The gradient of a fully connected layer's weights is a product over the rows of the batch, dY^T X: its mean over the
// ranks is the product of all ranks' rows. Where a layer has many weights and a rank few rows, gathering rows moves
// far fewer bytes than reducing gradients: (n-1) b (in + out) elements leave a rank in place of 2 (n-1)/n in out. Each
// rank then multiplies all rows itself. Done where the communication saved is predicted to take longer than that. Where
// several batches add their gradients before they are reduced, the rows of each are gathered.
#pragma once

#include <optional>

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

/// all_reduce(matmul(a, b, transpose_a)) becomes matmul(all_gather(a), all_gather(b), transpose_a), and
/// all_reduce(accumulate_update(sum, matmul(...))) becomes accumulate_update(sum, matmul(all_gather...)).
Graph late_multiply(const Graph& graph, const PassContext& context);

/// How long the mean of a gradient takes that way, computed in `dtype`: gathering, and multiplying the rows of the
/// other ranks; of a sum over several batches, in all of them (Ranks::batches). Nothing where the gradient is no such
/// product.
std::optional<double> late_multiply_seconds(const Graph& graph, ValueId gradient, const Ranks& ranks, DType dtype,
                                            int threads, const CostModel& costs);

}  // namespace weft::passes
