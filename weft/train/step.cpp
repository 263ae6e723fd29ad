#include "weft/train/step.h"

#include <fmt/format.h>

#include "weft/autodiff/autodiff.h"
#include "weft/ops/ops.h"

namespace weft::train {

TrainingStep build_training_step(const OpRegistry& registry, const RunSpec& spec, const models::ModelInput& input,
                                 const TrainingStepOptions& options) {
  models::Model model = models::build(registry, spec.model.name, input, spec.model.options, models::Mode::training);
  Graph& graph = model.graph;
  graph.set_name(spec.model.name + " training");
  const ValueId losses = ops::cross_entropy(graph, model.logits, model.labels, spec.loss.label_smoothing, "losses");
  const ValueId loss = ops::reduce_mean(graph, losses, {}, false, "loss");
  graph.add_output("loss", loss);
  graph.add_output("correct", ops::count_correct(graph, model.logits, model.labels, "correct"));

  std::vector<TrainedParameter> trained;
  std::vector<ValueId> targets;
  for (const models::ParameterSpec& parameter : model.parameters) {
    if (!parameter.trainable) continue;
    targets.push_back(graph.find_input(parameter.name)->value);
    trained.push_back({parameter.name, targets.back(), {}, parameter.decay});
  }
  const std::vector<ValueId> gradients = add_gradients(graph, loss, targets);
  for (size_t index = 0; index < trained.size(); ++index) {
    trained[index].gradient = gradients[index];
    if (options.gradient_outputs) graph.add_output("gradient." + trained[index].name, gradients[index]);
  }
  std::vector<SlotSpec> slots = add_optimizer(graph, spec.optimizer, trained);
  return {std::move(graph), std::move(model.parameters), std::move(slots)};
}

Graph build_evaluation_step(const OpRegistry& registry, const RunSpec& spec, const models::ModelInput& input) {
  models::Model model = models::build(registry, spec.model.name, input, spec.model.options, models::Mode::inference);
  Graph& graph = model.graph;
  graph.set_name(spec.model.name + " evaluation");
  const ValueId losses = ops::cross_entropy(graph, model.logits, model.labels, 0, "losses");
  graph.add_output("loss_sum", ops::reduce_sum(graph, losses, {}, false, "loss_sum"));
  graph.add_output("correct", ops::count_correct(graph, model.logits, model.labels, "correct"));
  return std::move(model.graph);
}

Graph build_prediction_step(const OpRegistry& registry, const RunSpec& spec, const models::ModelInput& input) {
  models::Model model = models::build(registry, spec.model.name, input, spec.model.options, models::Mode::inference);
  Graph& graph = model.graph;
  graph.set_name(spec.model.name + " prediction");
  graph.add_output("probabilities", ops::softmax(graph, model.logits, -1, "probabilities"));
  return std::move(model.graph);
}

State initial_state(const TrainingStep& step, uint64_t seed) {
  State state;
  for (const models::ParameterSpec& parameter : step.parameters)
    state.set(parameter.name, models::initialize(parameter, seed));
  for (const SlotSpec& slot : step.slots) state.set(slot.name, Tensor(slot.type));
  return state;
}

int64_t state_bytes(const TrainingStep& step) {
  int64_t bytes = 0;
  for (const models::ParameterSpec& parameter : step.parameters)
    bytes += align_up(parameter.shape.elements() * size_of(DType::f32));
  for (const SlotSpec& slot : step.slots) bytes += align_up(slot.type.bytes());
  return bytes;
}

int64_t parameter_count(const std::vector<models::ParameterSpec>& parameters) {
  int64_t count = 0;
  for (const models::ParameterSpec& parameter : parameters)
    if (parameter.trainable) count += parameter.shape.elements();
  return count;
}

}  // namespace weft::train
