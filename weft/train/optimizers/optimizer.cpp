// From a recipe's [optimizer] to the update nodes.
#include "weft/train/optimizers/optimizer.h"

#include "weft/base/error.h"

namespace weft::train {

namespace {

ValueId scalar_input(Graph& graph, const std::string& name, DType dtype) {
  if (const GraphInput* input = graph.find_input(name)) return input->value;
  return graph.add_input(InputKind::scalar, name, TensorType{dtype, {}, {}});
}

}  // namespace

std::vector<SlotSpec> add_optimizer(Graph& graph, const OptimizerSpec& spec,
                                    const std::vector<TrainedParameter>& parameters) {
  const ValueId learning_rate = scalar_input(graph, "learning_rate", DType::f32);
  if (spec.name == "sgd") return add_sgd(graph, spec, parameters, learning_rate);
  if (spec.name == "adamw")
    return add_adamw(graph, spec, parameters, learning_rate, scalar_input(graph, "step", DType::i64));
  fail(ErrorKind::internal, "optimizer '{}' has no function", spec.name);
}

}  // namespace weft::train
