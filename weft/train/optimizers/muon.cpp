// Muon (Keller Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks",
// kellerjordan.github.io/posts/muon, and the code it links to): the Nesterov momentum of each hidden weight, as a
// matrix of one row per output, is replaced by the nearest matrix with orthonormal rows or columns, roughly, by five
// steps of a Newton-Schulz iteration. With g the gradient, w the parameter, r the rate:
//   b' = momentum b + (1 - momentum) g      u = momentum b' + (1 - momentum) g
//   X = u / (|u| + 1e-7), five times X = a X + (b A + c A A) X with A = X X^T, (a,b,c) = (3.4445, -4.7750, 2.0315)
//   w' = (1 - r decay) w - r sqrt(max(1, rows / columns)) X
// Embeddings, the first and the last layer, biases and norms are updated by AdamW (adam.cpp) at the rate r times
// optimizer.adamw_learning_rate_factor. Slot "momentum" (b).
#include <algorithm>
#include <cmath>

#include "weft/ops/ops.h"
#include "weft/train/optimizers/update_builder.h"

namespace weft::train {

namespace {

constexpr int kIterations = 5;
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;

/// x [rows,columns] -> the same with all singular values near 1.
ValueId orthogonalize(Graph& graph, ValueId x) {
  const Shape shape = graph.shape(x);
  const bool is_tall = shape[0] > shape[1];  // then the smaller product is X^T X, on the other side
  const ValueId norm = ops::sqrt(graph, ops::squared_norm(graph, x));
  x = ops::divide(graph, x, ops::add_scalar(graph, norm, 1e-7));
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    const ValueId gram = ops::matmul(graph, x, x, is_tall, !is_tall);
    const ValueId cubic = ops::multiply_scalar(graph, ops::matmul(graph, gram, gram), kC);
    const ValueId polynomial = ops::add(graph, ops::multiply_scalar(graph, gram, kB), cubic);
    const ValueId product = is_tall ? ops::matmul(graph, x, polynomial) : ops::matmul(graph, polynomial, x);
    x = ops::add(graph, ops::multiply_scalar(graph, x, kA), product);
  }
  return x;
}

void add_hidden(UpdateBuilder& builder, const UpdatedParameter& parameter) {
  Graph& graph = builder.graph();
  const double momentum = builder.spec().momentum;
  const Shape shape = graph.shape(parameter.value);
  const int64_t rows = shape[0], columns = shape.elements() / rows;
  const ValueId average = builder.average_slot("momentum", parameter.name, parameter.gradient, momentum);
  const ValueId ahead = ops::add(graph, ops::multiply_scalar(graph, average, momentum),
                                 ops::multiply_scalar(graph, parameter.gradient, 1 - momentum));
  const ValueId matrix = ops::reshape(graph, ahead, {rows, columns}, parameter.name + ".momentum_matrix");
  const ValueId direction =
      ops::reshape(graph, orthogonalize(graph, matrix), shape.dims(), parameter.name + ".direction");
  const double scale = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
  const ValueId rate = parameter.learning_rate;
  const ValueId keep = ops::add_scalar(graph, ops::multiply_scalar(graph, rate, -parameter.weight_decay), 1);
  builder.set_next(parameter.name,
                   ops::blend_update(graph, parameter.value, direction, keep, ops::multiply_scalar(graph, rate, -scale),
                                     "update/" + parameter.name));
}

}  // namespace

void add_muon(UpdateBuilder& builder, const std::vector<UpdatedParameter>& parameters) {
  std::vector<UpdatedParameter> others;
  for (const UpdatedParameter& parameter : parameters) {
    if (parameter.hidden) {
      add_hidden(builder, parameter);
      continue;
    }
    others.push_back(parameter);
    others.back().learning_rate =
        ops::multiply_scalar(builder.graph(), parameter.learning_rate, builder.spec().adamw_learning_rate_factor);
  }
  add_adam(builder, others, /*decoupled=*/true);
}

}  // namespace weft::train
