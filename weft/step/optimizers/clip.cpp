// Bounds of the gradients. By value, as torch.nn.utils.clip_grad_value_: each element goes to the nearest end of
// [-value, value]. By norm (Pascanu et al. 2013, algorithm 1), as torch.nn.utils.clip_grad_norm_: with n the norm of
// all gradients together,
//   g' = g min(1, norm / (n + 1e-6))
// The output "gradient_norm" is n, before this.
#include "weft/ops/ops.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

namespace {

/// Of parts of tensors the ranks sum all squares at once.
ValueId squared_norm_of_all(Graph& graph, const std::vector<TrainedParameter>& parameters) {
  ValueId sum, of_parts;
  for (const TrainedParameter& parameter : parameters) {
    const ValueId square = ops::squared_norm(graph, parameter.gradient);
    ValueId& into = parameter.parts > 1 ? of_parts : sum;
    into = into.valid() ? ops::add(graph, into, square) : square;
  }
  if (!of_parts.valid()) return sum;
  of_parts = ops::all_reduce(graph, of_parts, "sum", "gradient_square.of_parts");
  return sum.valid() ? ops::add(graph, sum, of_parts) : of_parts;
}

}  // namespace

ValueId squared_norm_of_parts(Graph& graph, ValueId part, int64_t parts) {
  const ValueId own = ops::squared_norm(graph, part);
  return parts == 1 ? own : ops::all_reduce(graph, own, "sum", graph.value(part).name + ".square_of_parts");
}

void clip_gradients(Graph& graph, const spec::ClipSpec& spec, bool records_norm,
                    std::vector<TrainedParameter>& parameters) {
  if (spec.value > 0)
    for (TrainedParameter& parameter : parameters)
      parameter.gradient =
          ops::clip(graph, parameter.gradient, -spec.value, spec.value, parameter.name + ".clipped_gradient");
  if ((spec.norm == 0 && !records_norm) || parameters.empty()) return;
  const ValueId norm = ops::sqrt(graph, squared_norm_of_all(graph, parameters), "gradient_norm");
  graph.add_output("gradient_norm", norm);
  if (spec.norm == 0) return;
  const ValueId ratio = ops::divide(graph, ops::constant(graph, {}, spec.norm), ops::add_scalar(graph, norm, 1e-6));
  const ValueId factor = ops::minimum(graph, ratio, ops::constant(graph, {}, 1), "gradient_factor");
  for (TrainedParameter& parameter : parameters)
    parameter.gradient = ops::multiply(graph, parameter.gradient, factor, parameter.name + ".bounded_gradient");
}

}  // namespace weft::step
