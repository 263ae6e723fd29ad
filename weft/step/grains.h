// Grains let ranks have different shares of a batch. Each batch is cut into G equal grains, whose number of rows is the
// shape that is compiled. A rank computes as many consecutive grains as its share says, one after the other, and sums
// what they give: gradients, loss, right answers, statistics. The run of its last grain exchanges the sums, so that all
// ranks continue with the means over the G grains, whoever has computed them. Only the order of the sums depends on the
// shares.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/library/entries.h"
#include "weft/models/model.h"
#include "weft/spec/run_spec.h"
#include "weft/step/optimizers/optimizer.h"
#include "weft/step/step.h"
#include "weft/step/virtual_ranks.h"

namespace weft::step {

/// Error(usage) where the spec has fewer grains than there are ranks.
void require_grains(const spec::RunSpec& spec, int ranks);

/// Samples that are computed at a time. Error(usage) where the grains do not divide the batch.
int64_t rows_of_grain(const spec::RunSpec& spec, int64_t batch);

/// Grains of each rank as long as nothing is known of their speed: they differ by one at most.
std::vector<int64_t> equal_grains(int64_t grains, int ranks);
/// Of a run that goes on: those that were recorded, where they are of as many grains and ranks; else equal ones.
std::vector<int64_t> grains_to_begin_with(const std::vector<int64_t>& recorded, int64_t grains, int ranks);
/// The first grain of a rank.
int64_t first_grain(const std::vector<int64_t>& shares, int rank);

/// What exchanges the gradients of the parameters, and the slots that it needs.
using GradientExchange = std::function<std::vector<SlotSpec>(Graph& graph, std::vector<TrainedParameter>& trained)>;

/// Builds the step of a grain: one graph, whose run for the last grain of a rank exchanges and updates. `grain` has the
/// gradients of one grain, `results` what else is summed, and `averaged` are running statistics that have an average
/// (ema). Sums are slots like those of virtual ranks (kShardSumSlot). Scalar inputs as of accumulated batches:
/// "accumulated" is 0 in the first grain of a rank and 1 in the others; "share" is ranks / G; kSumComplete is 1 in its
/// last grain. The outputs "loss" and "correct" of the whole batch and, with several ranks, kStop are those of that
/// last run. Error(usage) for a model that updates a state by anything but a running average.
TrainingStep build_step_of_grains(Graph grain, const spec::RunSpec& spec, std::vector<models::ParameterSpec> parameters,
                                  std::vector<TrainedParameter> trained, const std::vector<std::string>& averaged,
                                  const ShardResults& results, int ranks, const GradientExchange& exchange,
                                  const Entries& entries);

}  // namespace weft::step
