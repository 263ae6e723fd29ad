// What a rank keeps between steps: parameters and the optimiser's slots, or its parts of them.
#include "weft/graph/tensor_parts.h"
#include "weft/models/initial_part.h"
#include "weft/step/step.h"

namespace weft::step {

State initial_state(const TrainingStep& step, uint64_t seed, int rank) {
  State state;
  for (const models::ParameterSpec& parameter : step.parameters) {
    const auto shared = step.shardings.find(parameter.name);
    if (shared != step.shardings.end() && !is_held(shared->second, rank)) continue;
    state.set(parameter.name, shared == step.shardings.end()
                                  ? models::initialize(parameter, seed)
                                  : models::initialize_part(parameter, seed, shared->second,
                                                            coordinate_of(shared->second, step.mesh, rank)));
  }
  start_slots(step, state, rank);
  return state;
}

void start_slots(const TrainingStep& step, State& state, int rank) { start_slots(step.slots, state, step.mesh, rank); }

int64_t state_bytes(const TrainingStep& step) {
  int64_t bytes = 0;
  for (const models::ParameterSpec& parameter : step.parameters) {
    const auto shared = step.shardings.find(parameter.name);
    if (shared != step.shardings.end() && !is_held(shared->second, step.rank)) continue;
    const Shape shape = shared == step.shardings.end() ? parameter.shape : part_shape(shared->second);
    bytes += align_up(byte_size(DType::f32, shape.elements()));
  }
  for (const SlotSpec& slot : step.slots)
    if (!slot.sharding || is_held(*slot.sharding, step.rank)) bytes += align_up(slot.type.bytes());
  return bytes;
}

int64_t parameter_count(const std::vector<models::ParameterSpec>& parameters) {
  int64_t count = 0;
  for (const models::ParameterSpec& parameter : parameters)
    if (parameter.trainable) count += parameter.shape.elements();
  return count;
}

}  // namespace weft::step
