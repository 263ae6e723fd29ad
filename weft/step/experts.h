// Experts that the ranks along the axis data divide among them (GShard: Lepikhin et al. 2020, "GShard: Scaling giant
// models with conditional computation and automatic sharding", section 3). Each rank has some experts of each layer,
// and computes them on the tokens of all ranks, which travel there and back (models/mixture_of_experts.h). So a rank
// has the whole gradient of its experts, and exchanges only those of the other weights.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "weft/models/model.h"
#include "weft/spec/run_spec.h"
#include "weft/step/step.h"

namespace weft::step {

/// The ranks that divide the experts, of so many along the axis data; 1: each has all.
int64_t expert_ranks(const spec::RunSpec& spec, int ranks);

/// Error(usage) where several ranks shall divide the experts of a model that has none.
void require_experts(const models::Model& model, const spec::RunSpec& spec, int ranks);

/// Notes in how many parts each parameter is, as the graph says.
void mark_parts(const Graph& graph, std::vector<TrainedParameter>& trained);

/// The gradient of a part for the mean of the ranks' losses; the one given is of their sum, from all ranks' tokens.
ValueId gradient_of_mean(Graph& graph, const TrainedParameter& part);

/// Exchanges the gradients, and returns the slots of that. Those of parts stay here: each becomes that of the mean.
std::vector<SlotSpec> exchange_all_but_parts(
    Graph& graph, std::vector<TrainedParameter>& trained,
    const std::function<std::vector<SlotSpec>(std::vector<TrainedParameter>&)>& exchange);

/// How parameters of the graph that are parts, and those slots of theirs that are named, are shared.
Shardings shardings_of_parts(const Graph& graph, const std::vector<SlotSpec>& slots);

/// Notes that in the step.
void note_parts(TrainingStep& step);

/// Whether ranks along the axis data have a part each, of some dimension.
bool is_part_along_data(const Sharding& sharding);
bool is_part_along_data(const Shardings& shardings, const std::string& state);

}  // namespace weft::step
