// Collectives beside all_reduce (ops.h): ops of all ranks of a run together, all of which have the same graph. Shapes
// are those on one of n ranks. Each has two halves, OP_start and OP_wait, between which tensors are under way, of any
// number of tensors of one type; passes make them (passes/overlap_all_gathers.h).
#pragma once

#include <cstdint>
#include <string>

#include "weft/graph/graph.h"

namespace weft::ops {

// --- tensors of which each rank has a part (collective_parts.cpp) ----------------------------------------------------
//   all_gather(x[r,...]) {ranks=n} -> y[n r,...]: the parts of all ranks, rank 0's first. Elements of 2 or 4 bytes.
//       Its gradient is the sum of what the ranks do with this one's part: reduce_scatter.
//   reduce_scatter(x[n r,...]) {ranks=n, reduction="mean"|"sum"} -> y[r,...]: rank k gets the rows k r to (k+1) r of
//   the
//       sum over all ranks, or of the mean. f32 or bf16, summed in f32. Its gradient is an all_gather.
ValueId all_gather(Graph&, ValueId x, int64_t ranks, const std::string& name = "");
ValueId reduce_scatter(Graph&, ValueId x, int64_t ranks, const std::string& reduction = "mean",
                       const std::string& name = "");

// --- one rank and all others (collective_root.cpp) -------------------------------------------------------------------
//   broadcast(x) {root=0} -> y, of x's shape: what the root has, on all ranks. Elements of 2 or 4 bytes. Its gradient
//   is
//       what all ranks do with it, at the root: reduce_to_root.
//   reduce_to_root(x) {root=0} -> y, of x's shape: the sum over all ranks at the root, zeros elsewhere. f32 or bf16.
//   Its
//       gradient is a broadcast.
ValueId broadcast(Graph&, ValueId x, int64_t root = 0, const std::string& name = "");
ValueId reduce_to_root(Graph&, ValueId x, int64_t root = 0, const std::string& name = "");

}  // namespace weft::ops
