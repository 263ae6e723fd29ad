// Collectives beside all_reduce (ops.h): ops of all ranks of a run together, all of which have the same graph. Shapes
// are those on one of n ranks. Each but all_to_all has two halves, OP_start and OP_wait, between which tensors are
// under way, of any number of tensors of one type; passes make them (passes/ranks/overlap_collectives.h).
#pragma once

#include <cstdint>
#include <string>

#include "weft/graph/graph.h"

namespace weft::ops {

// --- tensors of which each rank has a part (collective_parts.cpp) ----------------------------------------------------
//   all_gather(x[r,...]) {ranks=n, turn=0} -> y[n r,...]: the parts of all ranks, rank 0's first. Elements of 2 or 4
//       bytes. Gathers of one tensor with different turns are not made one.
//       Its gradient is the sum of what the ranks do with this one's part: reduce_scatter.
//   reduce_scatter(x[n r,...]) {ranks=n, reduction="mean"|"sum"} -> y[r,...]: rank k gets the rows k r to (k+1) r of
//   the
//       sum over all ranks, or of the mean. f32 or bf16, summed in f32. Its gradient is an all_gather.
//   all_to_all(x[n r,...]) {ranks=n} -> y[n r,...]: rank k gets the rows k r to (k+1) r of each rank, those of rank 0
//       first. Elements of 2 or 4 bytes. Its gradient goes the same way back: an all_to_all. It has no halves.
//   own_part(x[n r,...]) {ranks=n} -> y[r,...]: rank k's rows k r to (k+1) r of what all ranks have; nothing travels.
//       2 or 4 bytes. Has no gradient.
ValueId own_part(Graph&, ValueId x, int64_t ranks, const std::string& name = "");
ValueId all_gather(Graph&, ValueId x, int64_t ranks, const std::string& name = "");
ValueId all_to_all(Graph&, ValueId x, int64_t ranks, const std::string& name = "");
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

// --- from rank to rank (message.cpp) ---------------------------------------------------------------------------------
//   send(x) {peer, tag} -> sent, the same tensor: has been sent, so that x may be overwritten. It stays in the graph
//       though nobody reads its result. Any type, row-major.
//   receive() {peer, tag, shape, dtype="f32"} -> y: what the peer sends under the tag, messages of one tag in their
//       order, with as many bytes. It stays too, since the peer waits for it.
//   send_start(x) -> pending, send_wait(pending) -> sent, receive_start() -> pending, receive_wait(pending) -> y: their
//       halves, which also have the number of the message in its graph, and the tensor's name.
//   The two ranks' graphs differ. Neither op has a gradient: what it would have to be is in the graph of the peer,
//   which
//       receives what this one has to send back. Whoever cuts a graph into parts of ranks differentiates each part from
//       what it receives to what it sends, and adds the messages of the gradients. A `send` of more than what the
//       system keeps ends when the peer receives: two ranks that both send first, each to the other, wait until the
//       limit of waits ends them; they should begin with send_start.
ValueId send(Graph&, ValueId x, int64_t peer, int64_t tag, const std::string& name = "");
ValueId receive(Graph&, int64_t peer, int64_t tag, const TensorType& type, const std::string& name = "");

}  // namespace weft::ops
