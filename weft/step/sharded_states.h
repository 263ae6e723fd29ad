// States of which each of several ranks keeps a part, in place of all of them the whole (ZeRO: Rajbhandari, Rasley,
// Ruwase and He 2020, "ZeRO: Memory optimizations toward training trillion parameter models", section 5). Every rank
// updates its part of the weights by its part of the gradients, and then takes the others' parts.
//   shard.zero = 1: the optimiser's slots
//   shard.zero = 2: also the sum of the gradients of batches that are accumulated, or of the micro-batches of a
//                   pipeline, each of which is exchanged then
//   shard.zero = 3: also the weights, which are gathered where a layer reads them, forward and again backward
// Each tensor, or part of one along the axis tensor, is split by its elements, evenly. Small ones stay whole: there the
// message costs more than the memory. The graph stays one for all ranks along the axis (passes/ranks/partition.h).
#pragma once

#include <string>

#include "weft/spec/run_spec.h"
#include "weft/step/rank_mesh.h"
#include "weft/step/step.h"

namespace weft::step {

/// Values of shard.zero.
inline constexpr int64_t kGradientsShared = 2, kWeightsShared = 3;
/// Of fewer elements states stay whole.
inline constexpr int64_t kFewestShared = 1024;

/// Lets the ranks share the step's states as the spec says, in its graphs, slots and shardings. With one rank, or
/// without shard.zero, the step stays as it is.
void share_states(TrainingStep& step, const spec::RunSpec& spec, int ranks);

/// Whether the ranks share the sum of a gradient over the micro-batches of a pipeline. Then each of its terms is
/// reduced.
bool shares_sum(const spec::RunSpec& spec, const TensorType& gradient);

/// require_mesh() (rank_mesh.h) for a run that begins: states that nobody is there to share are a mistake.
void require_sharers(const spec::RunSpec& spec, int ranks, const RankStart& start = {});

/// Whether there are weights of which a rank keeps a part, or nothing.
bool shares_weights(const TrainingStep& step);

/// Whether evaluations put each weight together where a layer reads it, on every batch (evaluation.weights =
/// "by_layer"), or the whole model once ("once"). "auto": by layer where ranks along the axis data share the weights
/// and nothing else divides the model. Where layers are divided: once, which takes less time, unless the spec has a
/// memory_limit or the model takes more than a quarter of the rank's memory.
bool gathers_in_evaluation(const TrainingStep& step, const spec::RunSpec& spec, int64_t memory_bytes);

/// The same where layers are divided, of weights of so many bytes.
bool gathers_divided_layers(const spec::RunSpec& spec, double weight_bytes, double memory_bytes);

/// Whether along the axis data alone, so that the exchanges may overlap with the layers (overlap_collectives.h).
bool gathers_along_data(const TrainingStep& step);

/// Such an evaluation from one on whole weights. It runs on the state of that rank. All ranks run it as often, each on
/// any number of rows.
Graph gathering_evaluation(const Graph& evaluation, const TrainingStep& step, int rank);

/// Bytes of all whole weights; 0 where each rank has all of them.
int64_t whole_weight_bytes(const TrainingStep& step);

/// The same where evaluations put the model together once; else 0.
int64_t gathered_bytes(const TrainingStep& step, const spec::RunSpec& spec, int64_t memory_bytes);

/// Whether the ranks share the state.
inline bool is_shared(const Shardings& shardings, const std::string& state) { return shardings.contains(state); }

}  // namespace weft::step
