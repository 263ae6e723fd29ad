#include "weft/step/optimizers/update_builder.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/ops/ops.h"

namespace weft::step {

std::string slot_name(const std::string& slot, const std::string& parameter) {
  return fmt::format("{}{}/{}", kSlotPrefix, slot, parameter);
}

ValueId UpdateBuilder::scalar(const std::string& name, DType dtype) {
  if (const GraphInput* input = graph_.find_input(name)) return input->value;
  return graph_.add_input(InputKind::scalar, name, TensorType{dtype, {}, {}});
}

ValueId UpdateBuilder::constant(double value) { return ops::constant(graph_, {}, value); }

ValueId UpdateBuilder::momentum() {
  return spec_.momentum_schedule.changes() ? scalar("momentum") : constant(spec_.momentum);
}

ValueId UpdateBuilder::bias_correction(double beta) {
  // 1 - e^(-2y) = 2 tanh(y) / (1 + tanh(y)): nothing cancels where y is small.
  const ValueId count = ops::add_scalar(graph_, ops::cast(graph_, counter(), DType::f32), 1);
  const ValueId tangent = ops::tanh(graph_, ops::multiply_scalar(graph_, count, -std::log(beta) / 2));
  return ops::divide(graph_, ops::multiply_scalar(graph_, tangent, 2), ops::add_scalar(graph_, tangent, 1),
                     "bias_correction");
}

ValueId UpdateBuilder::slot(const std::string& slot, const std::string& parameter, bool copies) {
  const TensorType type{DType::f32, graph_.shape(graph_.find_input(parameter)->value), {}};
  slots_.push_back({slot_name(slot, parameter), type, copies ? parameter : ""});
  return graph_.add_input(InputKind::state, slots_.back().name, type);
}

void UpdateBuilder::set_next(const std::string& slot, const std::string& parameter, ValueId next) {
  next_[slot_name(slot, parameter)] = next;
}

ValueId UpdateBuilder::latest(const std::string& name) const {
  if (const auto found = next_.find(name); found != next_.end()) return found->second;
  for (const StateUpdate& update : graph_.updates())
    if (update.state == name) return update.value;
  return graph_.find_input(name)->value;
}

ValueId UpdateBuilder::blend_slot(const std::string& slot, const std::string& parameter, ValueId value, ValueId keep,
                                  ValueId take) {
  const ValueId now = this->slot(slot, parameter);
  const ValueId next = blend(now, value, keep, take, "update/" + slot + "/" + parameter);
  set_next(slot, parameter, next);
  return next;
}

ValueId UpdateBuilder::average_slot(const std::string& slot, const std::string& parameter, ValueId value,
                                    double share) {
  return blend_slot(slot, parameter, value, constant(share), constant(1 - share));
}

void UpdateBuilder::descend(const UpdatedParameter& parameter, ValueId direction, ValueId rate, double decay) {
  const ValueId keep =
      decay == 0 ? constant(1) : ops::add_scalar(graph_, ops::multiply_scalar(graph_, rate, -decay), 1, "keep");
  set_next(parameter.name,
           blend(parameter.value, direction, keep, ops::negate(graph_, rate), "update/" + parameter.name));
}

ValueId UpdateBuilder::decayed_gradient(const UpdatedParameter& parameter) {
  if (parameter.weight_decay == 0) return parameter.gradient;
  const ValueId decay = ops::multiply_scalar(graph_, parameter.value, parameter.weight_decay);
  return ops::add(graph_, parameter.gradient, decay, parameter.name + ".decayed_gradient");
}

std::vector<SlotSpec> UpdateBuilder::finish() {
  for (const auto& [state, value] : next_) graph_.add_update(state, value);
  return std::move(slots_);
}

}  // namespace weft::step
