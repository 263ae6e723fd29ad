// Momentum SGD, as torch.optim.SGD without dampening.
#include <fmt/format.h>

#include "weft/ops/ops.h"
#include "weft/train/optimizers/optimizer.h"

namespace weft::train {

std::vector<SlotSpec> add_sgd(Graph& graph, const OptimizerSpec& spec, const std::vector<TrainedParameter>& parameters,
                              ValueId learning_rate) {
  std::vector<SlotSpec> slots;
  for (const TrainedParameter& parameter : parameters) {
    const TensorType type{DType::f32, graph.shape(parameter.value), {}};
    slots.push_back({fmt::format("{}velocity/{}", kSlotPrefix, parameter.name), type});
    const ValueId velocity = graph.add_input(InputKind::state, slots.back().name, type);
    const ops::SgdOptions options{
        .momentum = spec.momentum, .weight_decay = parameter.decay ? spec.weight_decay : 0, .nesterov = spec.nesterov};
    const auto [next, next_velocity] = ops::sgd_update(graph, parameter.value, parameter.gradient, velocity,
                                                       learning_rate, options, "update/" + parameter.name);
    graph.add_update(parameter.name, next);
    graph.add_update(slots.back().name, next_velocity);
  }
  return slots;
}

}  // namespace weft::train
