// Normalisation, and dropout.
#include <algorithm>

#include "weft/onnx/operators/helpers.h"
#include "weft/onnx/operators/operators.h"

namespace weft::onnx {

namespace {

ValueId as_f32(Graph& graph, ValueId x) {
  return graph.type(x).dtype == DType::f32 ? x : ops::cast(graph, x, DType::f32);
}

/// Images or rows of two dimensions are as weft's ops want them; others become images of one column.
ValueId as_channels(Graph& graph, ValueId x) {
  const Shape shape = graph.shape(x);
  if (shape.rank() == 2 || shape.rank() == 4) return x;
  int64_t rest = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) rest *= shape[axis];
  return ops::reshape(graph, x, {shape[0], shape.rank() > 1 ? shape[1] : 1, rest, 1});
}

/// The name of the graph's input that a value is; empty where it is none.
std::string state_of(const Graph& graph, ValueId value) {
  for (const GraphInput& input : graph.inputs())
    if (input.value == value && input.kind == InputKind::state) return input.name;
  return {};
}

std::vector<ValueId> convert_batch_norm(NodeContext& node) {
  Graph& graph = node.graph();
  const double epsilon = node.real("epsilon", 1e-5), momentum = node.real("momentum", 0.9);
  if (node.opset() < 9 && node.integer("spatial", 1) == 0)
    node.fail("normalises each pixel alone, which weft does not");
  const ValueId scale = as_f32(graph, node.value(1)), shift = as_f32(graph, node.value(2));
  const ValueId mean = as_f32(graph, node.value(3)), variance = as_f32(graph, node.value(4));
  const bool by_batch = node.opset() >= 14 ? node.integer("training_mode", 0) != 0
                                           : node.opset() < 7 && node.integer("is_test", 0) == 0 && node.wants(1);
  // All of whose parameters stay keeps its statistics, too.
  const bool trains = node.is_training() && !state_of(graph, mean).empty() && !(node.is_frozen(1) && node.is_frozen(2));
  const DType dtype = node.dtype(0);
  const Shape shape = node.shape(0);
  ValueId x = node.value(0);
  if (!is_compute_dtype(dtype)) x = ops::cast(graph, x, DType::f32);
  x = as_channels(graph, x);
  const auto finished = [&](ValueId y) {
    if (graph.shape(y) != shape) y = ops::reshape(graph, y, shape.dims(), node.hint());
    return graph.type(y).dtype == dtype ? y : ops::cast(graph, y, dtype);
  };
  if (!by_batch && !trains)
    return {finished(ops::batch_norm_inference(graph, x, scale, shift, mean, variance, epsilon, node.hint()))};
  const auto result = ops::batch_norm(graph, x, scale, shift, epsilon, node.hint());
  if (trains) {
    // As PyTorch, whose running variance is unbiased.
    const double count = static_cast<double>(shape.elements()) / static_cast<double>(graph.shape(scale)[0]);
    const double factor = count > 1 ? count / (count - 1) : 1;
    graph.add_update(state_of(graph, mean), ops::running_average(graph, mean, result.mean, 1 - momentum, 1));
    graph.add_update(state_of(graph, variance),
                     ops::running_average(graph, variance, result.variance, 1 - momentum, factor));
    return {finished(result.output)};
  }
  const auto running = [&](ValueId old, ValueId sample, int input) {
    const ValueId kept = ops::multiply_scalar(graph, old, momentum);
    const ValueId y = ops::add(graph, kept, ops::multiply_scalar(graph, sample, 1 - momentum));
    return node.dtype(input) == DType::f32 ? y : ops::cast(graph, y, node.dtype(input));
  };
  return {finished(result.output), running(mean, result.mean, 3), running(variance, result.variance, 4)};
}

std::vector<ValueId> convert_instance_norm(NodeContext& node) {
  Graph& graph = node.graph();
  return {computed_in_f32(graph, node.value(0), [&](ValueId x) {
    return ops::instance_norm(graph, x, as_f32(graph, node.value(1)), as_f32(graph, node.value(2)),
                              node.real("epsilon", 1e-5), node.hint());
  })};
}

std::vector<ValueId> convert_group_norm(NodeContext& node) {
  Graph& graph = node.graph();
  if (node.rank(0) < 2) node.fail(fmt::format("wants channels as axis 1, got {}", to_string(node.shape(0))));
  const int64_t groups = node.integer("num_groups"), channels = node.shape(0)[1];
  const auto per_channel = [&](int input) {
    ValueId factor = as_f32(graph, node.value(input));
    if (node.shape(input).elements() == channels || groups < 1) return factor;
    // Version 18 had one for each group.
    factor = ops::reshape(graph, factor, {groups, 1});
    return ops::reshape(graph, ops::broadcast_to(graph, factor, Shape{groups, channels / groups}), {channels});
  };
  return {computed_in_f32(graph, node.value(0), [&](ValueId x) {
    return ops::group_norm(graph, x, per_channel(1), per_channel(2), groups, node.real("epsilon", 1e-5), node.hint());
  })};
}

std::vector<ValueId> convert_layer_norm(NodeContext& node) {
  Graph& graph = node.graph();
  const DType dtype = node.dtype(0);
  const Shape shape = node.shape(0);
  const int64_t axis = resolve_axis(node, node.integer("axis", -1), shape.rank());
  int64_t size = 1;
  for (int each = static_cast<int>(axis); each < shape.rank(); ++each) size *= shape[each];
  ValueId x = node.value(0);
  if (!is_compute_dtype(dtype)) x = ops::cast(graph, x, DType::f32);
  if (axis != shape.rank() - 1) x = flattened(graph, x, axis);
  const Shape parameter_shape(std::vector<int64_t>(shape.dims().begin() + axis, shape.dims().end()));
  const auto parameter = [&](int input, double fallback) {
    if (!node.has(input)) return ops::constant(graph, Shape{size}, fallback);
    ValueId value = as_f32(graph, node.value(input));
    if (graph.shape(value) != parameter_shape) value = ops::broadcast_to(graph, value, parameter_shape);
    return ops::reshape(graph, value, {size});
  };
  const auto results = graph.add_node("layer_norm", {x, parameter(1, 1), parameter(2, 0)},
                                      {{"epsilon", node.real("epsilon", 1e-5)}}, node.hint());
  ValueId y = results[0];
  if (graph.shape(y) != shape) y = ops::reshape(graph, y, shape.dims(), node.hint());
  if (graph.type(y).dtype != dtype) y = ops::cast(graph, y, dtype);
  std::vector<int64_t> statistics = shape.dims();
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  std::vector<ValueId> outputs = {y};
  for (int output = 1; output <= 2; ++output)
    outputs.push_back(node.wants(output) ? ops::reshape(graph, results[static_cast<size_t>(output)], statistics)
                                         : ValueId{});
  return outputs;
}

std::vector<ValueId> convert_rms_norm(NodeContext& node) {
  Graph& graph = node.graph();
  const int rank = node.rank(0);
  const int64_t axis = resolve_axis(node, node.integer("axis", -1), rank);
  std::vector<int64_t> axes;
  for (int64_t each = axis; each < rank; ++each) axes.push_back(each);
  const DType dtype = node.dtype(0);
  const ValueId x = as_f32(graph, node.value(0));
  const ValueId mean = ops::reduce_mean(graph, ops::square(graph, x), axes, true);
  const ValueId root = ops::sqrt(graph, ops::add_scalar(graph, mean, node.real("epsilon", 1e-5)));
  ValueId y = ops::divide(graph, x, root);
  if (node.dtype(1) == dtype && dtype != DType::f32) y = ops::cast(graph, y, dtype);
  y = ops::multiply(graph, y, node.value(1), node.hint());
  return {y};
}

/// x / (bias + alpha / size * sum of the squares of `size` channels around it) ^ beta
std::vector<ValueId> convert_local_response_norm(NodeContext& node) {
  Graph& graph = node.graph();
  if (node.rank(0) < 2) node.fail(fmt::format("wants channels as axis 1, got {}", to_string(node.shape(0))));
  const int64_t size = node.integer("size"), channels = node.shape(0)[1];
  constexpr int64_t kMost = 1024;  // each is a node of the graph
  if (size < 1 || size > kMost) node.fail(fmt::format("sums over {} channels, but wants 1 to {}", size, kMost));
  const double alpha = node.real("alpha", 1e-4), beta = node.real("beta", 0.75), bias = node.real("bias", 1);
  return {computed_in_f32(graph, node.value(0), [&](ValueId x) {
    std::vector<int64_t> low(static_cast<size_t>(node.rank(0)), 0), high = low;
    low[1] = (size - 1) / 2;
    high[1] = size - 1 - low[1];
    const ValueId squares = ops::pad(graph, ops::square(graph, x), low, high);
    ValueId sum{};
    for (int64_t at = 0; at < size; ++at) {
      std::vector<int64_t> starts(low.size(), 0), ends = graph.shape(x).dims();
      starts[1] = at;
      ends[1] = at + channels;
      const ValueId part = ops::slice(graph, squares, starts, ends);
      sum = sum.valid() ? ops::add(graph, sum, part) : part;
    }
    const ValueId base =
        ops::add_scalar(graph, ops::multiply_scalar(graph, sum, alpha / static_cast<double>(size)), bias);
    return ops::divide(graph, x, ops::pow_scalar(graph, base, beta), node.hint());
  })};
}

std::vector<ValueId> convert_lp_norm(NodeContext& node) {
  Graph& graph = node.graph();
  const int64_t axis = resolve_axis(node, node.integer("axis", -1), node.rank(0)), p = node.integer("p", 2);
  return {computed_in_f32(graph, node.value(0), [&](ValueId x) {
    const ValueId size = p == 1 ? ops::reduce_sum(graph, ops::absolute(graph, x), {axis}, true)
                                : ops::sqrt(graph, ops::reduce_sum(graph, ops::square(graph, x), {axis}, true));
    // A row of zeros stays one.
    const ValueId zero = scalar_like(graph, x, 0);
    const ValueId is_zero = as_boolean(graph, ops::equal(graph, size, zero));
    const ValueId divisor = ops::where(graph, is_zero, scalar_like(graph, x, 1), size);
    return ops::divide(graph, x, divisor, node.hint());
  })};
}

std::vector<ValueId> convert_mean_variance_norm(NodeContext& node) {
  Graph& graph = node.graph();
  const auto axes = resolve_axes(node, node.integers("axes", {0, 2, 3}), node.rank(0));
  return {computed_in_f32(graph, node.value(0), [&](ValueId x) {
    const ValueId centred = ops::subtract(graph, x, ops::reduce_mean(graph, x, axes, true));
    const ValueId variance = ops::reduce_mean(graph, ops::square(graph, centred), axes, true);
    return ops::divide(graph, centred, ops::add_scalar(graph, ops::sqrt(graph, variance), 1e-9), node.hint());
  })};
}

/// Of inference: the operand as it is.
std::vector<ValueId> convert_dropout(NodeContext& node) {
  Graph& graph = node.graph();
  const bool by_input = node.opset() >= 12 && node.has(2) && node.known_integer(2) != 0;
  const double ratio = node.opset() >= 12 ? (node.has(1) ? node.known_real(1) : 0.5) : node.real("ratio", 0.5);
  ValueId y = node.value(0);
  if (by_input && ratio != 0 && !node.is_training()) {
    // A model in training mode: the same elements at every run.
    const ValueId seed = ops::constant(graph, DType::i64, Shape{}, node.integer("seed", 0));
    const ValueId step = ops::constant(graph, DType::i64, Shape{}, int64_t{0});
    const auto dropped = [&](ValueId x) {
      return computed_in_f32(graph, x, [&](ValueId reals) { return ops::dropout(graph, reals, seed, step, ratio, 0); });
    };
    ValueId kept{};
    if (node.wants(1)) {
      const ValueId ones = dropped(ops::constant(graph, node.shape(0), 1));
      kept = as_boolean(graph, ops::greater(graph, ones, ops::constant(graph, Shape{}, 0)));
    }
    return {dropped(y), kept};
  }
  if (node.is_training() && ratio > 0 && graph.find_input("seed") != nullptr && graph.find_input("step") != nullptr)
    y = ops::dropout(graph, y, graph.find_input("seed")->value, graph.find_input("step")->value, ratio,
                     static_cast<int64_t>(graph.values().size()), node.hint());
  ValueId mask{};
  if (node.wants(1)) {
    const DType dtype = node.opset() >= 10 ? DType::boolean : node.dtype(0);
    mask = ops::constant(graph, dtype, node.shape(0), int64_t{1});
  }
  return {y, mask};
}

}  // namespace

void add_normalisation(OperatorTable& table) {
  const std::string family = "normalisation";
  table.add(family, "BatchNormalization", convert_batch_norm);
  table.add(family, "InstanceNormalization", convert_instance_norm);
  table.add(family, "GroupNormalization", convert_group_norm);
  table.add(family, "LayerNormalization", convert_layer_norm);
  table.add(family, "RMSNormalization", convert_rms_norm);
  table.add(family, "LRN", convert_local_response_norm);
  table.add(family, "LpNormalization", convert_lp_norm);
  table.add(family, "MeanVarianceNormalization", convert_mean_variance_norm);
  table.add(family, "Dropout", convert_dropout);
}

}  // namespace weft::onnx
