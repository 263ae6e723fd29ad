// Where the arena of a step would exceed the limit of the context, drops activations after their last use in the
// forward part and computes them again before the backward part reads them, at the least extra time that it finds (Chen
// et al. 2016, "Training deep nets with sublinear memory cost"; Jain et al. 2020, "Checkmate").
//
// The copies carry the attribute recomputed = true and the name of the original with ".again". They compute bit by bit
// what the originals did: random ops draw by seed and step, statistics are read where they were saved (a batch norm is
// repeated as batch_norm_inference), and updates are never repeated. Where no choice meets the limit, the one with the
// smallest arena is taken: whoever compiles decides what to do with it. But where values may go to a file, the graph is
// then left to the pass offload.
#pragma once

#include "weft/graph/graph.h"
#include "weft/passes/support/pass_context.h"

namespace weft::passes {

Graph recompute(const Graph& graph, const PassContext& context);

struct FittedGraph {
  Graph graph;
  int64_t arena_bytes = 0;  // above the limit where no choice meets it: the smallest that was found
};

/// `planned`: what planning makes of the graph, which exceeds the limit. Values may go to a file that is written and
/// read at so many bytes per second; at 0 none does.
FittedGraph fit_to_limit(const Graph& graph, const PassContext& context, const PlannedMemory& planned,
                         double offload_bytes_per_second);

}  // namespace weft::passes
