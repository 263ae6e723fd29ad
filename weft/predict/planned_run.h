// Predicts runs that need not be possible here: on other machines, on any number of ranks, by any strategy. Plans are
// made for each, and nothing is allocated or run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "weft/base/cores.h"
#include "weft/library/library.h"
#include "weft/machines/cluster_file.h"
#include "weft/models/model.h"
#include "weft/predict/prediction.h"
#include "weft/predict/run_prediction.h"
#include "weft/spec/run_spec.h"
#include "weft/spec/step_shape.h"

namespace weft::predict {

/// What is to be trained, wherever.
struct PlannedModel {
  spec::RunSpec spec = {};  // resolved; its batch is that of all ranks
  std::function<models::ModelInput(const spec::StepShape& shape)> input = {};  // what a rank reads at a time
  int64_t samples = 0;                                                         // to train on; 0: not known
  std::function<double(int64_t steps)> evaluated_samples = {};  // in all evaluations of so many steps; null: none
  double sample_seconds = 0;                                    // of one core here, to make one; 0: not known
  std::string item = "samples";
  int64_t items_per_sample = 1;
  /// Bytes that a rank's loaders take where so many ranks divide the batches; null: none worth counting.
  std::function<int64_t(int64_t data_ranks)> loading_bytes = {};
};

/// Where.
struct Place {
  const machines::ClusterFile* cluster = nullptr;  // null: ranks on this host, which share its cores and take turns
  /// Times of nodes on this machine with as many threads, and as many ranks at once; for a cluster of devices like the
  /// one here, and for none.
  std::function<NodeTimes(const HostCores& host)> times_here = {};
  /// Cores of this host, for all its ranks together.
  int64_t cores = available_cores();
  /// Of exchanges in this host's memory that were not measured: bytes of one rank's operands of an all-reduce.
  double shared_bytes_per_second = comm::ClusterCosts{}.shared_bytes_per_second;
  /// Where a memory limit cannot be kept, the error says the least that can. False saves that time: for one of many.
  bool seeks_least_memory = true;
};

/// By what steps on the place are planned, and what their nodes take on the slowest of the strategy's ranks there.
struct PlaceTimes {
  std::shared_ptr<const CostModel> costs;
  NodeTimes nodes;
};
PlaceTimes times_at(const Place& place, const Strategy& strategy);

/// Ranks that the place has in all, and on each host: all of the cluster's devices, or as asked for.
Strategy strategy_on(const spec::RunSpec& spec, const Place& place, std::optional<int64_t> ranks);

/// Of the place's hosts, and of the ranks on each.
HostCores host_cores_of(const Place& place, const Strategy& strategy);

/// What a rank of the place has: of its device, or its part of the host's.
double memory_of_rank(const Place& place, const Strategy& strategy);

/// How its ranks exchange there. `nodes`: of times_at().
ExchangeTimes exchange_at(const Place& place, const Strategy& strategy, const NodeTimes& nodes);

/// Of a pipeline the slowest rank's time and the fullest one's memory. Error(usage) where a run of the strategy would
/// be refused (recipe_by), where ranks cannot share the batch, where the place has fewer ranks, where the samples make
/// no step, and where a rank has too little memory, with the least that would do.
Prediction predict_on(const Library& library, const PlannedModel& model, const Strategy& strategy, const Place& place);

/// The memory alone that this would take, of the fullest rank in the fullest stage, whether it has as much or not.
/// Error(usage) as above, and where a memory limit of the recipe cannot be kept.
MemoryPrediction memory_on(const Library& library, const PlannedModel& model, const Strategy& strategy,
                           const Place& place);

/// The least memory of a rank that would do: of the fullest rank in the fullest stage, with as much computed twice, or
/// in a file, as can be. One search ends above what many, each for less than the one before, come to.
enum class LeastMemory { of_one_search, of_many_searches };
int64_t least_memory(const Library& library, const PlannedModel& model, const Strategy& strategy, const Place& place,
                     LeastMemory how = LeastMemory::of_many_searches);

}  // namespace weft::predict
