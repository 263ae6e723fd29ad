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
#include "weft/ops/ranks/collective.h"
#include "weft/step/optimizers/entries.h"
#include "weft/step/optimizers/keys.h"
#include "weft/step/optimizers/update_builder.h"

namespace weft::step {

namespace {

constexpr int kIterations = 5;
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;

/// A product with the longer side costs this many times one of the shorter side with itself before it is better left
/// out of the iterations.
constexpr int64_t kElongated = 2;

/// x -> factor x + left right, where `left` and `right` are in this order unless `mirrored`.
ValueId scaled_plus_product(Graph& graph, double factor, ValueId x, ValueId left, ValueId right,
                            bool mirrored = false) {
  const ValueId product = mirrored ? ops::matmul(graph, right, left) : ops::matmul(graph, left, right);
  return ops::add(graph, ops::multiply_scalar(graph, x, factor), product);
}

/// b A + c A A: an iteration multiplies X by a I plus this.
ValueId step_matrix(Graph& graph, ValueId gram) {
  const ValueId cubic = ops::multiply_scalar(graph, ops::matmul(graph, gram, gram), kC);
  return ops::add(graph, ops::multiply_scalar(graph, gram, kB), cubic);
}

/// The five iterations as the header has them: 5 (4 r + 2) n^3 operations for n rows or columns on the shorter side and
/// r times as many on the other.
ValueId iterate(Graph& graph, ValueId x, bool is_tall) {
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    const ValueId step = step_matrix(graph, ops::matmul(graph, x, x, is_tall, !is_tall));
    x = scaled_plus_product(graph, kA, x, step, x, is_tall);
  }
  return x;
}

/// The same with all but the first and the last product on the shorter side: what X is multiplied by is a polynomial of
/// its Gram matrix A, and such matrices commute. With P = a I + H, X' = P X has the Gram matrix P A P; the product of
/// all P is kept as q I + R. (4 r + 34) n^3 operations.
ValueId iterate_on_gram_matrix(Graph& graph, ValueId x, bool is_tall) {
  ValueId gram = ops::matmul(graph, x, x, is_tall, !is_tall);
  ValueId rest = step_matrix(graph, gram), step = rest;  // R and H after the first iteration
  double identity = kA;                                  // q
  for (int iteration = 1; iteration < kIterations; ++iteration) {
    const ValueId half = scaled_plus_product(graph, kA, gram, step, gram);  // P A
    gram = scaled_plus_product(graph, kA, half, half, step);                // P A P
    step = step_matrix(graph, gram);
    // (a I + H)(q I + R) = a q I + q H + (a R + H R)
    rest =
        ops::add(graph, ops::multiply_scalar(graph, step, identity), scaled_plus_product(graph, kA, rest, step, rest));
    identity *= kA;
  }
  return scaled_plus_product(graph, identity, x, rest, x, is_tall);
}

/// x [rows,columns] -> the same with all singular values near 1.
ValueId orthogonalize(Graph& graph, ValueId x) {
  const Shape shape = graph.shape(x);
  const bool is_tall = shape[0] > shape[1];  // then the smaller product is X^T X, on the other side
  const ValueId norm = ops::sqrt(graph, ops::squared_norm(graph, x));
  x = ops::divide(graph, x, ops::add_scalar(graph, norm, 1e-7));
  const int64_t shorter = std::min(shape[0], shape[1]), longer = std::max(shape[0], shape[1]);
  return longer >= kElongated * shorter ? iterate_on_gram_matrix(graph, x, is_tall) : iterate(graph, x, is_tall);
}

/// u, of which b' is a slot.
ValueId look_ahead(UpdateBuilder& builder, const UpdatedParameter& parameter) {
  Graph& graph = builder.graph();
  const ValueId gradient = parameter.gradient;
  if (!builder.spec().momentum_schedule.changes()) {
    const double momentum = builder.spec().momentum;
    const ValueId average = builder.average_slot("momentum", parameter.name, gradient, momentum);
    return ops::add(graph, ops::multiply_scalar(graph, average, momentum),
                    ops::multiply_scalar(graph, gradient, 1 - momentum));
  }
  const ValueId momentum = builder.momentum();
  const ValueId rest = ops::add_scalar(graph, ops::negate(graph, momentum), 1);
  const ValueId average = builder.blend_slot("momentum", parameter.name, gradient, momentum, rest);
  return ops::add(graph, ops::multiply(graph, average, momentum), ops::multiply(graph, gradient, rest));
}

void add_hidden(UpdateBuilder& builder, const UpdatedParameter& parameter) {
  Graph& graph = builder.graph();
  const Shape shape = graph.shape(parameter.value);
  const int64_t parts = parameter.parts, rows = shape[0] * parts, columns = shape.elements() / shape[0];
  ValueId matrix =
      ops::reshape(graph, look_ahead(builder, parameter), {shape[0], columns}, parameter.name + ".momentum_matrix");
  if (parts > 1) matrix = ops::all_gather(graph, matrix, parts, "all_gather/" + parameter.name);
  ValueId orthogonal = orthogonalize(graph, matrix);
  if (parts > 1) orthogonal = ops::own_part(graph, orthogonal, parts, parameter.name + ".own_rows");
  const ValueId direction = ops::reshape(graph, orthogonal, shape.dims(), parameter.name + ".direction");
  const double scale = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
  const ValueId rate = parameter.learning_rate;
  const ValueId keep = ops::add_scalar(graph, ops::multiply_scalar(graph, rate, -parameter.weight_decay), 1);
  builder.set_next(parameter.name,
                   builder.blend(parameter.value, direction, keep, ops::multiply_scalar(graph, rate, -scale),
                                 "update/" + parameter.name));
}

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

}  // namespace

OptimizerEntry muon_entry() {
  std::vector<Key> keys = adam_keys();
  keys.push_back(momentum_key(0.95));
  keys.push_back({.name = "adamw_learning_rate_factor",
                  .value = 0.015,
                  .low = 0,
                  .high = 1e6,
                  .help = "muon: adamw's rate over learning_rate"});
  return {.name = "muon",
          .summary = "Keller Jordan et al. 2024: orthogonal steps of hidden weights, AdamW for the rest",
          .learning_rate = 0.02,
          .weight_decay = 0,
          .keys = keys,
          .build = add_muon};
}

}  // namespace weft::step
