// Adam with decoupled weight decay, as torch.optim.AdamW.
#include <fmt/format.h>

#include "weft/ops/ops.h"
#include "weft/train/optimizers/optimizer.h"

namespace weft::train {

std::vector<SlotSpec> add_adamw(Graph& graph, const OptimizerSpec& spec,
                                const std::vector<TrainedParameter>& parameters, ValueId learning_rate, ValueId step) {
  std::vector<SlotSpec> slots;
  const auto add_slot = [&](const std::string& kind, const TrainedParameter& parameter) {
    const TensorType type{DType::f32, graph.shape(parameter.value), {}};
    slots.push_back({fmt::format("{}{}/{}", kSlotPrefix, kind, parameter.name), type});
    return graph.add_input(InputKind::state, slots.back().name, type);
  };
  for (const TrainedParameter& parameter : parameters) {
    const ValueId first = add_slot("first_moment", parameter);
    const ValueId second = add_slot("second_moment", parameter);
    const ops::AdamWOptions options{.beta1 = spec.beta1,
                                    .beta2 = spec.beta2,
                                    .epsilon = spec.epsilon,
                                    .weight_decay = parameter.decay ? spec.weight_decay : 0};
    const auto [next, next_first, next_second] =
        ops::adamw_update(graph, parameter.value, parameter.gradient, first, second, learning_rate, step, options,
                          "update/" + parameter.name);
    graph.add_update(parameter.name, next);
    graph.add_update(slots[slots.size() - 2].name, next_first);
    graph.add_update(slots.back().name, next_second);
  }
  return slots;
}

}  // namespace weft::train
