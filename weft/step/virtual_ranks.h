// One result at any scale: the mathematics of a run with virtual ranks depends on their number V alone. Each process of
// n takes V/n consecutive shards of every batch, one after the other; all that shards have in common - gradients, loss,
// right answers, statistics for running averages - is summed in the order of a balanced binary tree over the V shards,
// ((s0 + s1) + (s2 + s3)) + ..., the lower part of which each process has to itself (ops/tree_sum.h) and the upper part
// the collectives. The bits are the same on 1, 2, 4 ... V processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/graph/graph.h"
#include "weft/models/model.h"
#include "weft/spec/run_spec.h"
#include "weft/step/optimizers/optimizer.h"
#include "weft/step/step.h"

namespace weft::step {

/// Slots of partial sums, "optimizer/shard_sum/LEVEL/NAME". They mean nothing between steps, are not kept in
/// checkpoints, and there are more of them the fewer processes there are.
inline constexpr const char* kShardSumSlot = "shard_sum";
/// Scalar input (i64) of the step of a shard: which of this process's it is.
inline constexpr const char* kShardIndex = "shard";

/// How many shards each of `ranks` processes computes of a batch: 1 where there are no virtual ranks.
int64_t shards_of_rank(const spec::RunSpec& spec, int ranks);
/// Samples that a process computes at a time.
int64_t samples_at_a_time(const spec::RunSpec& spec, int64_t batch, int ranks);

/// Where this process stands among those of the run. With virtual ranks the processes of a host stand beside each
/// other, as its sums want it, however the ranks are numbered. Error(usage) where so many processes cannot take the
/// virtual ranks that the spec asks for.
int place_of(const spec::RunSpec& spec, const comm::Communicator* ranks);

/// What the step of a shard has computed, beside the gradients.
struct ShardResults {
  ValueId loss;     // mean over the rows of the shard, those whose label does not count included, with 0
  ValueId correct;  // invalid where there are no classes
  ValueId counted;  // labels that count; invalid where all do
  double rows = 0, labels = 0;
  bool scales_correct = false;  // to as many as there would be if all labels counted
};

/// The step of a shard, which sums, and the update of a batch, which begins with the sums of all shards and has the
/// outputs "loss" and "correct", those of the whole batch, and, on several ranks, kStop. Error(usage) for a model that
/// updates a state otherwise than by a running average.
TrainingStep build_sharded_step(Graph shard, const spec::RunSpec& spec, std::vector<models::ParameterSpec> parameters,
                                std::vector<TrainedParameter> trained, const ShardResults& results, int ranks,
                                const Entries& entries);

/// Makes the slots of partial sums, which checkpoints leave out.
void start_shard_sums(const TrainingStep& step, State& state);

/// Rows of this process's rows of a batch of `count` samples that its shards have, one after the other.
std::vector<int64_t> rows_of_shards(int64_t count, int64_t virtual_ranks, int place, int processes);

}  // namespace weft::step
