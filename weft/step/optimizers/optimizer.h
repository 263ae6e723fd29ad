// Optimisers: each adds to the graph of a step the update of every parameter and the states that it needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/device/state.h"
#include "weft/graph/graph.h"
#include "weft/library/entries.h"
#include "weft/spec/run_spec.h"
#include "weft/step/states/state_sharding.h"

namespace weft::step {

/// A parameter of the graph with its gradient.
struct TrainedParameter {
  std::string name;
  ValueId value, gradient;
  bool decay = true;    // false for bias and norm
  bool hidden = false;  // the weight of a hidden layer (hidden_weights.h), which is what muon updates
  // So many ranks along the axis data have a part each, with its gradient. What is computed over all elements they sum.
  int64_t parts = 1;
};

/// A state of the optimiser, such as a momentum: "optimizer/velocity/conv1.weight".
struct SlotSpec {
  std::string name;
  TensorType type;
  std::string copy_of = {};                    // begins as a copy of this state
  double start = 0;                            // else each element is this
  std::optional<StateSharding> sharding = {};  // where ranks share it; the type is that of a part
};

/// Sets slots to what they begin with, on the rank of this number in the mesh.
void start_slots(const std::vector<SlotSpec>& slots, State& state, const Mesh& mesh = Mesh({}), int rank = 0);

/// Whether optimizer.freeze names the parameter.
bool is_frozen(const spec::OptimizerSpec& spec, const std::string& parameter);

/// The parameters that the optimiser updates: all but those that are frozen and those of groups with
/// learning_rate_factor = 0. Error(usage) for a pattern that matches nothing, or a parameter of two groups.
std::vector<TrainedParameter> without_frozen(const spec::OptimizerSpec& spec, std::vector<TrainedParameter> parameters);

inline constexpr const char* kSlotPrefix = "optimizer/";
/// The slot of the gradient sum where batches are accumulated. After a step that loss scaling skipped, it may hold
/// values that are not finite; the next batch begins a new sum.
inline constexpr const char* kGradientSumSlot = "gradient_sum";
/// "optimizer/SLOT/NAME"
std::string slot_name(const std::string& slot, const std::string& parameter);

/// Adds the update of a step for the gradients of without_frozen(), in this order: division by the loss scale where the
/// spec scales the loss (loss_scaling.h), clipping, groups, the spec's optimiser, look-ahead, and the average of the
/// weights and of the model's running `statistics`. Scalar inputs: "learning_rate"; "learning_rate/GROUP" for a group
/// with a rate of its own; `counter` (i64, updates done) where something counts; with look-ahead "synchronise" and
/// "slow_share" (1 and alpha in updates that end with a synchronisation, else 0); "ema_decay". Output "gradient_norm"
/// where the spec bounds or records it.
std::vector<SlotSpec> add_update(Graph& graph, const spec::RunSpec& spec,
                                 const std::vector<TrainedParameter>& parameters,
                                 const std::vector<std::string>& statistics, const std::string& counter,
                                 const Entries& entries = standard_entries());

/// Adds only the optimiser.
std::vector<SlotSpec> add_optimizer(Graph& graph, const spec::OptimizerSpec& spec,
                                    const std::vector<TrainedParameter>& parameters,
                                    const Entries& entries = standard_entries());

}  // namespace weft::step
