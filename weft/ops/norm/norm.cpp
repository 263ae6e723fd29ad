// Batch normalisation (Ioffe and Szegedy 2015): training, inference, gradient and the running statistics.
#include <cmath>

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"
#include "weft/ops/norm/layer_norm.h"

namespace weft::ops {

void require_epsilon(const InferContext& context) {
  const double epsilon = context.attributes.real("epsilon");
  if (!(epsilon >= 0 && std::isfinite(epsilon)))
    context.fail(fmt::format("epsilon must be a number of at least 0, got {}", epsilon));
}

namespace {

AttributeSpec epsilon_attribute() { return attribute("epsilon", 1e-5, "added to the variance before its root"); }
AttributeSpec activation_attribute() {
  return attribute("activation", std::string("none"), "applied to the output: none, relu or relu6");
}

/// Images [N,C,H,W] or rows [N,C]; per-channel operands [C], f32; operands of the input's shape and type, which is
/// given back; a known activation.
DType require_batch_norm(const InferContext& context, int input, std::initializer_list<int> channelwise,
                         std::initializer_list<int> same_shape) {
  const Shape& shape = context.shape(input);
  if (shape.rank() != 2 && shape.rank() != 4) {
    context.fail(
        fmt::format("input wants 2 or 4 dimensions (batch, channels, height, width), got {}", context.describe(input)));
  }
  const DType dtype = context.require_compute_dtype(input);
  for (const int operand : channelwise) {
    context.require_dtype(operand, DType::f32);
    if (context.shape(operand) == Shape{shape[1]}) continue;
    context.fail(fmt::format("{} wants one number for each of the {} channels of {}, got {}",
                             context.op.inputs[static_cast<size_t>(operand)], shape[1], context.describe(input),
                             context.describe(operand)));
  }
  for (const int operand : same_shape) {
    if (operand >= context.input_count()) continue;
    context.require_dtype(operand, dtype);
    context.require_same_shape(operand, input);
  }
  require_epsilon(context);
  const std::string& activation = context.attributes.text("activation");
  if (activation != "none" && activation != "relu" && activation != "relu6") {
    context.fail(fmt::format("activation is none, relu or relu6, got '{}'", activation));
  }
  return dtype;
}

std::vector<TensorType> infer_batch_norm(const InferContext& context) {
  const DType dtype = require_batch_norm(context, 0, {1, 2}, {3});
  const Shape& input = context.shape(0);
  if (input.elements() == input[1]) {
    context.fail(fmt::format("{} has one value per channel, which has no variance; train with larger batches or images",
                             context.describe(0)));
  }
  return {typed(dtype, input), f32({input[1]}), f32({input[1]})};
}

std::vector<TensorType> infer_batch_norm_backward(const InferContext& context) {
  const DType dtype = require_batch_norm(context, 1, {2, 3, 4, 5}, {0, 6});
  const Shape& input = context.shape(1);
  std::vector<TensorType> outputs{typed(dtype, input), f32({input[1]}), f32({input[1]})};
  if (context.attributes.boolean("residual_gradient")) outputs.push_back(typed(dtype, input));
  return outputs;
}

/// [C] -> [1,C,1,1] (or [1,C]), so that it broadcasts over an input of this rank.
ValueId per_channel(Graph& graph, ValueId x, int rank) {
  const int64_t channels = graph.shape(x).elements();
  return reshape(graph, x, rank == 4 ? std::vector<int64_t>{1, channels, 1, 1} : std::vector<int64_t>{1, channels});
}

/// What reaches the input through the statistics, where something depends on them directly:
/// d mean / dx = 1/n and d variance / dx = 2 (x - mean) / n for n values per channel.
ValueId add_statistics_gradient(Graph& graph, GradContext& context, ValueId gradient) {
  const Shape shape = graph.shape(context.inputs[0]);
  const double values = static_cast<double>(shape.elements() / shape[1]);
  if (context.output_gradients[1].valid()) {
    const ValueId scaled = multiply_scalar(graph, context.output_gradients[1], 1 / values);
    gradient = add(graph, gradient, per_channel(graph, scaled, shape.rank()));
  }
  if (context.output_gradients[2].valid()) {
    const ValueId centred = subtract(graph, context.inputs[0], per_channel(graph, context.outputs[1], shape.rank()));
    const ValueId scaled = multiply_scalar(graph, context.output_gradients[2], 2 / values);
    gradient = add(graph, gradient, multiply(graph, centred, per_channel(graph, scaled, shape.rank())));
  }
  return gradient;
}

std::vector<ValueId> grad_batch_norm(GradContext& context) {
  Graph& graph = context.graph;
  Attributes attributes = attributes_of(context);
  const bool has_residual = context.inputs.size() > 3;
  const bool is_masked = attributes.text("activation") != "none";
  ValueId output_gradient = context.output_gradients[0];
  if (!output_gradient.valid()) output_gradient = constant(graph, graph.shape(context.inputs[0]), 0);
  std::vector<ValueId> operands{output_gradient,   context.inputs[0],  context.inputs[1],
                                context.inputs[2], context.outputs[1], context.outputs[2]};
  if (is_masked && has_residual) operands.push_back(context.outputs[0]);
  attributes.set("residual_gradient", has_residual);
  std::vector<ValueId> gradients =
      graph.add_node("batch_norm_backward", operands, attributes, gradient_name(context, "input"));
  gradients[0] = add_statistics_gradient(graph, context, gradients[0]);
  return gradients;
}

/// The statistics are constants here, so the op is an affine map of the input.
std::vector<ValueId> grad_batch_norm_inference(GradContext& context) {
  Graph& graph = context.graph;
  const Attributes attributes = attributes_of(context);
  const ValueId input = context.inputs[0], scale = context.inputs[1], mean = context.inputs[3];
  const Shape channels = graph.shape(scale);
  const int rank = graph.shape(input).rank();
  ValueId gradient = context.output_gradients[0];
  if (attributes.text("activation") == "relu") {
    gradient = graph.add("relu_backward", {gradient, context.outputs[0]});
  } else if (attributes.text("activation") == "relu6") {
    gradient = graph.add("clip_backward", {gradient, context.outputs[0]}, {{"low", 0.0}, {"high", 6.0}});
  }
  const ValueId shifted_variance = add_scalar(graph, context.inputs[4], attributes.real("epsilon"));
  const ValueId inverse_std = reciprocal(graph, sqrt(graph, shifted_variance));
  const ValueId slope = multiply(graph, scale, inverse_std);
  const ValueId centred = subtract(graph, input, per_channel(graph, mean, rank));
  const auto sum_channels = [&](ValueId x) {
    return rank == 4 ? reduce_sum(graph, x, {0, 2, 3}) : reduce_sum(graph, x, {0});
  };
  const ValueId shift_gradient = sum_channels(gradient);
  const ValueId scale_gradient = multiply(graph, sum_channels(multiply(graph, gradient, centred)), inverse_std);
  const ValueId mean_gradient = negate(graph, multiply(graph, shift_gradient, slope));
  const ValueId variance_gradient =
      multiply_scalar(graph, divide(graph, multiply(graph, scale_gradient, scale), shifted_variance), -0.5);
  std::vector<ValueId> gradients{
      multiply(graph, gradient, per_channel(graph, slope, rank), gradient_name(context, "input")), scale_gradient,
      shift_gradient, mean_gradient, variance_gradient};
  if (context.inputs.size() > 5) gradients.push_back(gradient);
  return gradients;
}

using Ranges = std::vector<OpExample::Range>;
constexpr OpExample::Range kWide{-1, 1}, kScale{0.5, 1.5}, kVariance{0.5, 2};
// With a relu and two channels: one shift is 3, the other -3, and 8 values cannot lie further than sqrt(7) x 0.9 from
// their mean; so one channel is wholly above the kink and the other wholly below.
constexpr OpExample::Range kSafeScale{0.5, 0.9}, kSafeShift{-6, 6, true}, kSmall{-0.2, 0.2};
// With a relu6 and three channels, whose shifts are -5, 3 and 11: below both kinks, between them, above.
constexpr OpExample::Range kSafeShifts{-9, 15, true};

OpExample forward_example(std::string label, Shape shape, const std::string& activation = "none",
                          bool residual = false) {
  const Shape channels{shape[1]};
  OpExample example{std::move(label), {f32(shape), f32(channels), f32(channels)}, {{"activation", activation}}, {}};
  example.ranges = activation == "relu"    ? Ranges{kWide, kSafeScale, kSafeShift}
                   : activation == "relu6" ? Ranges{kWide, kSafeScale, kSafeShifts}
                                           : Ranges{kWide, kScale, kWide};
  if (residual) {
    example.inputs.push_back(f32(shape));
    example.ranges.push_back(activation == "none" ? kWide : kSmall);
  }
  return example;
}

OpExample inference_example(std::string label, Shape shape, const std::string& activation = "none",
                            bool residual = false) {
  const Shape channels{shape[1]};
  OpExample example = forward_example(std::move(label), shape, activation, residual);
  example.inputs.insert(example.inputs.begin() + 3, {f32(channels), f32(channels)});
  example.ranges.insert(example.ranges.begin() + 3, {kSmall, kVariance});
  return example;
}

OpExample backward_example(std::string label, Shape shape, const std::string& activation = "none", bool output = false,
                           bool residual = false) {
  const TensorType full = f32(shape), channels = f32({shape[1]});
  OpExample example{std::move(label),
                    {full, full, channels, channels, channels, channels},
                    {{"activation", activation}, {"residual_gradient", residual}},
                    {kWide, kWide, kScale, kWide, kSmall, kVariance}};
  if (activation == "relu6") example.ranges[3] = {-3, 9};
  if (output) example.inputs.push_back(full);
  if (output && activation == "relu6") example.ranges.push_back({-3, 9});
  return example;
}

OpDef batch_norm_op() {
  OpDef op;
  op.name = "batch_norm";
  op.dimensions = channel_dimensions;
  op.summary = "Normalises each channel by its mean and biased variance over the batch, then scales and shifts it.";
  op.inputs = {"input", "scale", "shift", "residual?"};
  op.outputs = {"output", "mean", "variance"};
  op.attributes = {epsilon_attribute(), activation_attribute()};
  op.infer = infer_batch_norm;
  op.gradient = grad_batch_norm;
  // Per element: 1 for the mean, 3 for the variance, 2 to apply both, 1 each for residual and activation.
  op.flops = [](const auto& inputs, const auto&, const Attributes& attributes) {
    const int64_t extra = (inputs.size() > 3 ? 1 : 0) + (attributes.text("activation") != "none" ? 1 : 0);
    return (6 + extra) * inputs[0].elements();
  };
  op.layout_rule = LayoutRule::channelwise;
  op.precision = PrecisionRule::follow;
  op.f32_inputs = {1, 2};
  op.in_place = {{0, 3}};
  op.examples = {forward_example("images", {2, 3, 4, 4}),
                 forward_example("16 channels", {2, 16, 3, 3}),
                 forward_example("17 channels, odd size", {2, 17, 3, 1}),
                 forward_example("rows", {8, 5}),
                 forward_example("relu", {2, 2, 2, 2}, "relu"),
                 forward_example("residual", {2, 3, 3, 3}, "none", true),
                 forward_example("residual and relu", {2, 2, 2, 2}, "relu", true),
                 forward_example("relu6", {2, 3, 2, 2}, "relu6"),
                 forward_example("residual and relu6", {2, 3, 2, 2}, "relu6", true)};
  return op;
}

std::vector<TensorType> infer_batch_statistics(const InferContext& context) {
  const Shape& input = context.shape(0);
  if (input.rank() != 2 && input.rank() != 4)
    context.fail(
        fmt::format("input wants 2 or 4 dimensions (batch, channels, height, width), got {}", context.describe(0)));
  context.require_compute_dtype(0);
  return {f32({input[1]}), f32({input[1]})};
}

/// The first two of batch_norm's three steps, for those who do the third with the statistics of several ranks.
OpDef batch_statistics_op() {
  OpDef op;
  op.name = "batch_statistics";
  op.dimensions = channel_dimensions;
  op.summary = "Mean and biased variance of each channel over the batch, as batch_norm takes them.";
  op.inputs = {"input"};
  op.outputs = {"mean", "variance"};
  op.infer = infer_batch_statistics;
  op.gradient = [](GradContext& context) -> std::vector<ValueId> {
    Graph& graph = context.graph;
    const ValueId input = context.inputs[0];
    const Shape shape = graph.shape(input);
    const auto values = static_cast<double>(shape.elements() / shape[1]);
    const auto over_values = [&](ValueId gradient, double factor) {
      return per_channel(graph, multiply_scalar(graph, gradient, factor / values), shape.rank());
    };
    ValueId gradient;
    if (context.output_gradients[1].valid())
      gradient = multiply(graph, subtract(graph, input, per_channel(graph, context.outputs[0], shape.rank())),
                          over_values(context.output_gradients[1], 2));
    if (context.output_gradients[0].valid()) {
      const ValueId of_mean = broadcast_to(graph, over_values(context.output_gradients[0], 1), shape);
      gradient = gradient.valid() ? add(graph, gradient, of_mean) : of_mean;
    }
    return {gradient};
  };
  // Per element: 1 for the mean, 3 for the variance.
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 4 * inputs[0].elements(); };
  op.layout_rule = LayoutRule::channelwise;
  op.examples = {{"images", {f32({2, 3, 4, 4})}, {}, {kWide}},
                 {"17 channels, odd size", {f32({2, 17, 3, 1})}, {}, {kWide}},
                 {"rows", {f32({8, 5})}, {}, {kWide}}};
  return op;
}

OpDef batch_norm_backward_op() {
  OpDef op;
  op.name = "batch_norm_backward";
  op.dimensions = channel_dimensions;
  op.summary = "Gradients of batch_norm with respect to input, scale, shift and, if wanted, the residual.";
  op.inputs = {"output_gradient", "input", "scale", "shift", "mean", "variance", "output?"};
  op.outputs = {"input_gradient", "scale_gradient", "shift_gradient", "residual_gradient"};
  op.attributes = {epsilon_attribute(), activation_attribute(),
                   attribute("residual_gradient", false, "there is a fourth output: the masked output gradient")};
  op.infer = infer_batch_norm_backward;
  // Per element: 2 for the normalised input, 3 for the two sums, 4 for the input gradient; 1 for the mask.
  op.flops = [](const auto& inputs, const auto&, const Attributes& attributes) {
    return (attributes.text("activation") != "none" ? 10 : 9) * inputs[0].elements();
  };
  op.layout_rule = LayoutRule::channelwise;
  op.precision = PrecisionRule::follow;
  op.f32_inputs = {2, 3, 4, 5};
  op.in_place = {{0, 0}, {3, 0}};
  op.examples = {backward_example("images", {2, 3, 4, 4}),
                 backward_example("16 channels", {2, 16, 3, 3}),
                 backward_example("rows", {8, 5}),
                 backward_example("mask from input", {2, 17, 3, 3}, "relu"),
                 backward_example("mask from output", {2, 4, 3, 3}, "relu", true),
                 backward_example("residual", {2, 3, 3, 3}, "none", false, true),
                 backward_example("residual and relu", {2, 16, 3, 3}, "relu", true, true),
                 backward_example("relu6, mask from input", {2, 17, 3, 3}, "relu6"),
                 backward_example("residual and relu6", {2, 4, 3, 3}, "relu6", true, true)};
  return op;
}

OpDef batch_norm_inference_op() {
  OpDef op;
  op.name = "batch_norm_inference";
  op.dimensions = channel_dimensions;
  op.summary = "Normalises each channel by given statistics, then scales and shifts it.";
  op.inputs = {"input", "scale", "shift", "mean", "variance", "residual?"};
  op.outputs = {"output"};
  op.attributes = {epsilon_attribute(), activation_attribute()};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    const DType dtype = require_batch_norm(context, 0, {1, 2, 3, 4}, {5});
    return {typed(dtype, context.shape(0))};
  };
  op.gradient = grad_batch_norm_inference;
  op.flops = [](const auto& inputs, const auto&, const Attributes& attributes) {
    const int64_t extra = (inputs.size() > 5 ? 1 : 0) + (attributes.text("activation") != "none" ? 1 : 0);
    return (2 + extra) * inputs[0].elements();
  };
  op.layout_rule = LayoutRule::channelwise;
  op.precision = PrecisionRule::follow;
  op.f32_inputs = {1, 2, 3, 4};
  op.in_place = {{0, 0}, {0, 5}};
  op.examples = {inference_example("images", {2, 3, 4, 4}),
                 inference_example("16 channels", {1, 16, 3, 3}),
                 inference_example("rows", {4, 5}),
                 inference_example("relu", {2, 2, 2, 2}, "relu"),
                 inference_example("residual", {2, 3, 3, 3}, "none", true),
                 inference_example("residual and relu", {2, 2, 2, 2}, "relu", true),
                 inference_example("relu6", {2, 3, 2, 2}, "relu6")};
  return op;
}

OpDef running_average_op() {
  OpDef op;
  op.name = "running_average";
  op.dimensions = elementwise_dimensions;
  op.summary = "(1 - momentum) running + momentum x sample_factor x sample; what is not finite is left out.";
  op.inputs = {"running", "sample"};
  op.outputs = {"running"};
  op.attributes = {attribute("momentum", 0.1, "weight of the new sample, from 0 to 1"),
                   attribute("sample_factor", 1.0, "n/(n-1) makes a biased variance over n values unbiased")};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.require_dtype(0, DType::f32);
    context.require_dtype(1, DType::f32);
    context.require_same_shape(0, 1);
    const double momentum = context.attributes.real("momentum");
    if (!(momentum >= 0 && momentum <= 1)) {
      context.fail(fmt::format("momentum must lie between 0 and 1, got {}", momentum));
    }
    return {f32(context.shape(0))};
  };
  op.flops = [](const auto& inputs, const auto&, const Attributes&) { return 3 * inputs[0].elements(); };
  op.layout_rule = LayoutRule::elementwise;
  op.in_place = {{0, 0}};
  op.is_update = true;
  op.examples = {{"mean", {f32({5}), f32({5})}, {}, {}},
                 {"unbiased variance",
                  {f32({16}), f32({16})},
                  {{"momentum", 0.25}, {"sample_factor", 8.0 / 7.0}},
                  {kVariance, kVariance}},
                 {"last sample only", {f32({3}), f32({3})}, {{"momentum", 1.0}}, {}}};
  return op;
}

}  // namespace

void add_norm_ops(OpRegistry& registry) {
  registry.add(of_work(work::kNormalisation, batch_norm_op()));
  registry.add(batch_statistics_op());
  registry.add(of_work(work::kNormalisation, batch_norm_backward_op()));
  registry.add(of_work(work::kNormalisation, batch_norm_inference_op()));
  registry.add(of_work(work::kUpdates, running_average_op()));
  add_layer_norm_ops(registry);
}

BatchNormResult batch_norm(Graph& graph, ValueId input, ValueId scale, ValueId shift, double epsilon,
                           const std::string& name) {
  if (const Shape shape = graph.shape(input); shape.rank() == 3) {  // as an image of one column
    const ValueId image = reshape(graph, input, {shape[0], shape[1], shape[2], 1});
    BatchNormResult result = batch_norm(graph, image, scale, shift, epsilon, name.empty() ? "" : name + ".image");
    result.output = reshape(graph, result.output, shape.dims(), name);
    return result;
  }
  const auto results = graph.add_node("batch_norm", {input, scale, shift}, {{"epsilon", epsilon}}, name);
  return {results[0], results[1], results[2]};
}

ValueId batch_norm_inference(Graph& graph, ValueId input, ValueId scale, ValueId shift, ValueId mean, ValueId variance,
                             double epsilon, const std::string& name) {
  if (const Shape shape = graph.shape(input); shape.rank() == 3) {
    const ValueId image = reshape(graph, input, {shape[0], shape[1], shape[2], 1});
    return reshape(graph, batch_norm_inference(graph, image, scale, shift, mean, variance, epsilon), shape.dims(),
                   name);
  }
  return graph.add("batch_norm_inference", {input, scale, shift, mean, variance}, {{"epsilon", epsilon}}, name);
}

ValueId running_average(Graph& graph, ValueId running, ValueId sample, double momentum, double sample_factor,
                        const std::string& name) {
  return graph.add("running_average", {running, sample}, {{"momentum", momentum}, {"sample_factor", sample_factor}},
                   name);
}

}  // namespace weft::ops
