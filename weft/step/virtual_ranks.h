// Virtual ranks give one result at any scale: the mathematics of a run depends only on their number V. Each of n
// processes takes V/n consecutive shards of every batch, one after the other. All that shards share - gradients, loss,
// right answers, statistics for running averages - is summed in the order of a balanced binary tree over the V shards,
// ((s0 + s1) + (s2 + s3)) + .... Each process sums the lower part of the tree by itself (ops/tree_sum.h); the
// collectives sum the upper part. The bits are the same on 1, 2, 4 ... V processes.
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

/// Slots of partial sums, "optimizer/shard_sum/LEVEL/NAME". They mean nothing between steps, and checkpoints omit them.
/// Fewer processes have more of them.
inline constexpr const char* kShardSumSlot = "shard_sum";
/// Scalar input (i64) of the step of a shard: which of this process's it is.
inline constexpr const char* kShardIndex = "shard";

/// Shards of a batch that each of `ranks` processes computes, or grains (grains.h), as long as their shares are equal
/// and as far as those can be divided; 1 with neither.
int64_t shards_of_rank(const spec::RunSpec& spec, int ranks);
/// Samples that a process computes at a time.
int64_t samples_at_a_time(const spec::RunSpec& spec, int64_t batch, int ranks);

/// Error(usage) where so many processes cannot take the spec's virtual ranks, or its grains.
void require_shards(const spec::RunSpec& spec, int ranks);
/// The place of this process among those of the run. With virtual ranks, the processes of one host are neighbours, as
/// the sums need it, whatever their rank numbers. Errors of require_shards(); Error(usage) where hosts
/// have different numbers of processes.
int place_of(const spec::RunSpec& spec, const comm::Communicator* ranks);

/// What the step of a shard, or of a grain, has computed beside the gradients.
struct ShardResults {
  ValueId loss;     // mean over the rows of the shard, those whose label does not count included, with 0
  ValueId correct;  // invalid where there are no classes
  ValueId counted;  // labels that count; invalid where all do
  double rows = 0, labels = 0;
  bool scales_correct = false;  // to as many as there would be if all labels counted
};

/// Builds the step of a shard, which sums, and the update of a batch. `averaged`: running statistics that have an
/// average where the spec asks for one (ema). The update begins with the sums of all shards and
/// has the outputs "loss" and "correct" of the whole batch and, with several ranks, kStop. Error(usage) for a model
/// that updates a state by anything but a running average.
TrainingStep build_sharded_step(Graph shard, const spec::RunSpec& spec, std::vector<models::ParameterSpec> parameters,
                                std::vector<TrainedParameter> trained, const std::vector<std::string>& averaged,
                                const ShardResults& results, int ranks, const Entries& entries);

/// Makes the slots of partial sums, which checkpoints leave out; those over micro-batches too (micro_batches.h).
void start_shard_sums(const TrainingStep& step, State& state);

/// The rows of each of this process's shards, in order, in a batch of `count` samples.
std::vector<int64_t> rows_of_shards(int64_t count, int64_t virtual_ranks, int place, int processes);

}  // namespace weft::step
