// Lets a network in f32 compute in a narrower type T (bf16, f16): convolutions and matrix products get operands of T,
// what is bound by memory follows where its activations are T, everything else stays f32, and casts stand between.
//
// The states stay f32: the pass rewrites the finished graph of a step, of which models, gradients and optimisers know
// nothing. Gradients of parameters leave the network in f32. What lies between the last product, normalisation or
// pooling and an output - the loss - is computed in f32, and so is everything that depends on an update.
#pragma once

#include "weft/graph/graph.h"
#include "weft/passes/support/precision_policy.h"

namespace weft::passes {

/// Error(usage) where an override lets an op compute in T that computes in f32 only.
Graph lower_precision(const Graph& graph, const PrecisionPolicy& policy);

/// Error(usage) for an override that matches no node of the graph, with the nearest name.
void require_matches(const Graph& graph, const PrecisionPolicy& policy);

}  // namespace weft::passes
