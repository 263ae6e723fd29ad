// Weights of which each rank along the axis tensor has a part, and computes with it: fully connected layers, heads of
// attention, channels of convolutions, rows of tables (Shoeybi et al. 2019, "Megatron-LM"). The spec says which
// dimension of which weight is split (shard.tensor), or leaves it to the pass, which alternates between the outputs of
// one layer and the inputs of the next. The optimiser's states follow their weights.
#pragma once

#include <vector>

#include "weft/spec/run_spec.h"
#include "weft/step/pipeline_layout.h"
#include "weft/step/step.h"

namespace weft::step {

/// Lets so many ranks share the step's weights, in its graphs, slots and shardings. With one the step stays as it is.
/// Error(usage) for a pattern of shard.tensor that matches no weight, and for a weight that cannot be split as it says.
void split_weights(TrainingStep& step, const spec::RunSpec& spec, int ranks);

/// The same of a pipeline before it is cut: of a micro-batch, of the update of all its weights, and of the update's
/// slots. Returns how states are split, those included that ranks along the axis data split (`shardings`). The gradient
/// of a weight is split as the weight is.
Shardings split_weights(MicroBatch& micro, Graph& update, std::vector<SlotSpec>& slots,
                        const std::vector<models::ParameterSpec>& parameters, const spec::RunSpec& spec, int ranks,
                        Shardings shardings);

}  // namespace weft::step
