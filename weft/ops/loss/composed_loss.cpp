// Losses composed of other ops. Each gives one number per sample; their mean over a batch is what PyTorch's losses
// give.
#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

std::string name_or(const std::string& name, const char* otherwise) { return name.empty() ? otherwise : name; }

/// Broadcasting predictions against targets is nearly always a mistake.
void require_like(const Graph& graph, const char* loss, const std::string& name, ValueId prediction, ValueId target) {
  if (graph.shape(prediction) == graph.shape(target)) return;
  fail(ErrorKind::shape, "[{}] '{}': '{}' {} and '{}' {} must have the same shape; reshape one of them", loss, name,
       graph.value(prediction).name, to_string(graph.shape(prediction)), graph.value(target).name,
       to_string(graph.shape(target)));
}

/// [N,..] -> [N]
ValueId mean_per_sample(Graph& graph, ValueId x, const std::string& name) {
  std::vector<int64_t> axes;
  for (int axis = 1; axis < graph.shape(x).rank(); ++axis) axes.push_back(axis);
  return axes.empty() ? reshape(graph, x, graph.shape(x).dims(), name) : reduce_mean(graph, x, axes, false, name);
}

/// Huber's loss times `factor`: with c = min(|d|, delta), c (|d| - c / 2) is d^2 / 2 inside and
/// delta (|d| - delta / 2) outside.
ValueId huber_elements(Graph& graph, ValueId prediction, ValueId target, double delta, double factor) {
  const ValueId distance = absolute(graph, subtract(graph, prediction, target));
  const ValueId inside = clip(graph, distance, 0, delta);
  const ValueId value = multiply(graph, inside, subtract(graph, distance, multiply_scalar(graph, inside, 0.5)));
  return factor == 1 ? value : multiply_scalar(graph, value, factor);
}

void require_positive(const char* loss, const std::string& name, const char* parameter, double value) {
  if (!(value > 0)) fail(ErrorKind::usage, "[{}] '{}': {} must be above 0, got {}", loss, name, parameter, value);
}

/// Logits [rows,C] and labels [rows] of images [N,C,H,W] and [N,H,W], or of more or fewer axes behind the classes.
struct Rows {
  ValueId logits, labels;
};
Rows as_rows(Graph& graph, ValueId logits, ValueId labels, const std::string& name) {
  const Shape shape = graph.shape(logits), wanted = graph.shape(labels);
  std::vector<int64_t> dims = shape.dims();
  if (shape.rank() >= 2) dims.erase(dims.begin() + 1);
  if (shape.rank() < 2 || wanted.dims() != dims)
    fail(ErrorKind::shape, "[cross_entropy] '{}': logits (N,classes,..) want labels (N,..), got '{}' {} and '{}' {}",
         name, graph.value(logits).name, to_string(shape), graph.value(labels).name, to_string(wanted));
  if (shape.rank() == 2) return {logits, labels};
  std::vector<int64_t> permutation{0};
  for (int axis = 2; axis < shape.rank(); ++axis) permutation.push_back(axis);
  permutation.push_back(1);
  const ValueId last = transpose(graph, logits, permutation, name + ".classes_last");
  return {reshape(graph, last, {-1, shape[1]}, name + ".rows"), reshape(graph, labels, {-1}, name + ".labels")};
}

/// 1 for the rows that count.
ValueId counted(Graph& graph, ValueId labels, const CrossEntropyOptions& options, const std::string& name) {
  const ValueId ignored = graph.add(
      "constant", {},
      {{"shape", std::vector<int64_t>{}}, {"value", static_cast<double>(options.ignore_index)}, {"dtype", "i32"}},
      name + ".ignored");
  return not_equal(graph, labels, ignored, name + ".counted");
}

struct RowLosses {
  ValueId losses, weights;  // both [rows]; weights invalid where each row counts 1 (or 0, where ignored)
};
RowLosses row_losses(Graph& graph, const Rows& rows, const CrossEntropyOptions& options, const std::string& name) {
  const double smoothing = options.label_smoothing;
  const auto losses = [&](double label_smoothing, const std::string& hint) {
    const Attributes attributes{{"label_smoothing", label_smoothing}, {"ignore_index", options.ignore_index}};
    return graph.add("cross_entropy", {rows.logits, rows.labels}, attributes, hint);
  };
  if (!options.class_weights.valid()) return {losses(smoothing, name + ".losses"), {}};
  const int64_t classes = graph.shape(rows.logits)[1];
  if (graph.shape(options.class_weights) != Shape{classes})
    fail(ErrorKind::shape, "[cross_entropy] '{}': {} classes want as many weights, got '{}' {}", name, classes,
         graph.value(options.class_weights).name, to_string(graph.shape(options.class_weights)));
  // Of the label's class; NaN where the label is none, which shows in the loss.
  const ValueId taken = take(graph, options.class_weights, rows.labels);
  const ValueId zero = constant(graph, {}, 0);
  const ValueId mask = counted(graph, rows.labels, options, name);
  const ValueId weights = where(graph, mask, taken, zero, name + ".weights");
  if (smoothing == 0) return {multiply(graph, losses(0, name + ".unweighted"), weights, name + ".losses"), weights};
  // The smoothed part weighs every class by its own weight, as in PyTorch.
  const ValueId label_part =
      multiply(graph, multiply_scalar(graph, losses(0, name + ".unweighted"), 1 - smoothing), weights);
  const ValueId shares = multiply_scalar(graph, options.class_weights, smoothing / static_cast<double>(classes));
  const ValueId spread = soft_cross_entropy(graph, rows.logits, broadcast_to(graph, shares, graph.shape(rows.logits)));
  return {add(graph, label_part, where(graph, mask, spread, zero), name + ".losses"), weights};
}

}  // namespace

ValueId mse(Graph& graph, ValueId prediction, ValueId target, const std::string& name) {
  const std::string hint = name_or(name, "mse");
  require_like(graph, "mse", hint, prediction, target);
  return mean_per_sample(graph, square(graph, subtract(graph, prediction, target)), hint);
}

ValueId l1(Graph& graph, ValueId prediction, ValueId target, const std::string& name) {
  const std::string hint = name_or(name, "l1");
  require_like(graph, "l1", hint, prediction, target);
  return mean_per_sample(graph, absolute(graph, subtract(graph, prediction, target)), hint);
}

ValueId huber(Graph& graph, ValueId prediction, ValueId target, double delta, const std::string& name) {
  const std::string hint = name_or(name, "huber");
  require_like(graph, "huber", hint, prediction, target);
  require_positive("huber", hint, "delta", delta);
  return mean_per_sample(graph, huber_elements(graph, prediction, target, delta, 1), hint);
}

ValueId smooth_l1(Graph& graph, ValueId prediction, ValueId target, double beta, const std::string& name) {
  const std::string hint = name_or(name, "smooth_l1");
  require_like(graph, "smooth_l1", hint, prediction, target);
  require_positive("smooth_l1", hint, "beta", beta);
  return mean_per_sample(graph, huber_elements(graph, prediction, target, beta, 1 / beta), hint);
}

ValueId bce_with_logits(Graph& graph, ValueId logits, ValueId targets, const std::string& name,
                        ValueId positive_weight) {
  const std::string hint = name_or(name, "bce_with_logits");
  require_like(graph, "bce_with_logits", hint, logits, targets);
  // -log sigmoid(x) = softplus(-x), and -log(1 - sigmoid(x)) = x + softplus(-x).
  ValueId miss = softplus(graph, negate(graph, logits));
  if (positive_weight.valid()) {
    const ValueId extra = multiply(graph, targets, add_scalar(graph, positive_weight, -1));
    miss = multiply(graph, miss, add_scalar(graph, extra, 1));
  }
  const ValueId negative = add_scalar(graph, negate(graph, targets), 1);
  return mean_per_sample(graph, add(graph, multiply(graph, negative, logits), miss), hint);
}

ValueId soft_cross_entropy(Graph& graph, ValueId logits, ValueId targets, const std::string& name) {
  const std::string hint = name_or(name, "soft_cross_entropy");
  require_like(graph, "soft_cross_entropy", hint, logits, targets);
  const ValueId products = multiply(graph, targets, log_softmax(graph, logits));
  return negate(graph, reduce_sum(graph, products, {-1}), hint);
}

ValueId cross_entropy(Graph& graph, ValueId logits, ValueId labels, const CrossEntropyOptions& options,
                      const std::string& name) {
  const std::string hint = name_or(name, "cross_entropy");
  const RowLosses rows = row_losses(graph, as_rows(graph, logits, labels, hint), options, hint);
  const std::vector<int64_t> dims = graph.shape(labels).dims();
  return reshape(graph, rows.losses, dims, hint);
}

ValueId mean_cross_entropy(Graph& graph, ValueId logits, ValueId labels, const CrossEntropyOptions& options,
                           const std::string& name) {
  const std::string hint = name_or(name, "mean_cross_entropy");
  const Rows rows = as_rows(graph, logits, labels, hint);
  const RowLosses losses = row_losses(graph, rows, options, hint);
  const ValueId weights = losses.weights.valid() ? losses.weights : counted(graph, rows.labels, options, hint);
  return divide(graph, reduce_sum(graph, losses.losses), reduce_sum(graph, weights), hint);
}

}  // namespace weft::ops
