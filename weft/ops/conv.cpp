// Convolution of images and its two gradients. All three are bilinear, so each one's gradients are again convolutions.
#include "weft/base/error.h"
#include "weft/graph/granted_workspace.h"
#include "weft/graph/marks.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"
#include "weft/ops/window.h"

namespace weft::ops {
namespace {

std::vector<AttributeSpec> conv_attributes() {
  return {attribute("stride", std::vector<int64_t>{1, 1}, "rows and columns from one window to the next"),
          attribute("padding", std::vector<int64_t>{0, 0}, "zero rows and columns added on each side"),
          attribute("dilation", std::vector<int64_t>{1, 1}, "rows and columns from one kernel element to the next"),
          attribute("groups", int64_t{1}, "parts into which the channels are cut; all channels: depthwise"),
          attribute(kGrantedWorkspace, int64_t{0},
                    "bytes of workspace for multiplying in Winograd's transformed tiles; 0: not so")};
}

Attributes to_attributes(const Conv2dOptions& options) {
  Attributes attributes{{"stride", to_list(options.stride)},
                        {"padding", to_list(options.padding)},
                        {"dilation", to_list(options.dilation)},
                        {"groups", options.groups}};
  if (options.is_exact) attributes.set(kExact, true);
  return attributes;
}

Attributes without(Attributes attributes, const std::string& name) {
  attributes.erase(name);
  return attributes;
}
Attributes with(Attributes attributes, const std::string& name, int64_t height, int64_t width) {
  attributes.set(name, std::vector<int64_t>{height, width});
  return attributes;
}

int64_t groups_attribute(const InferContext& context) {
  const int64_t groups = context.attributes.integer("groups");
  if (groups < 1) context.fail(fmt::format("groups must be at least 1, got {}", groups));
  return groups;
}

void require_group_multiple(const InferContext& context, int64_t channels, int64_t groups, const char* which,
                            const std::string& source) {
  if (channels % groups == 0) return;
  context.fail(fmt::format("{} groups do not divide the {} {} channels of {}; choose a divisor of {}", groups, channels,
                           which, source, channels));
}

/// Operands 0 and 1 are of rank 4 and of one type, which is given back.
DType require_images(const InferContext& context) {
  const DType dtype = context.require_compute_dtype(0);
  context.require_dtype(1, dtype);
  for (const int operand : {0, 1}) context.require_rank(operand, 4);
  return dtype;
}

/// A kernel of at least 1 x 1, and a filter for each group.
void require_filters(const InferContext& context, const Shape& weight, int64_t groups) {
  if (weight[0] >= groups && weight[2] >= 1 && weight[3] >= 1) return;
  context.fail(fmt::format("weight {} must have at least {} output channel{} and a kernel of at least 1 x 1",
                           to_string(weight), groups, groups == 1 ? "" : "s"));
}

void require_bias(const InferContext& context, int64_t channels) {
  context.require_dtype(2, DType::f32);
  if (context.shape(2) == Shape{channels}) return;
  context.fail(
      fmt::format("bias {} must be one number for each of the {} output channels", context.describe(2), channels));
}

std::vector<TensorType> infer_conv2d(const InferContext& context) {
  const DType dtype = require_images(context);
  const Shape &input = context.shape(0), &weight = context.shape(1);
  const int64_t groups = groups_attribute(context);
  require_group_multiple(context, input[1], groups, "input", context.describe(0));
  require_group_multiple(context, weight[0], groups, "output", "weight " + to_string(weight));
  require_filters(context, weight, groups);
  if (weight[1] * groups != input[1]) {
    context.fail(fmt::format("weight {} wants {} input channels{}, got {} from {}", to_string(weight),
                             weight[1] * groups, groups > 1 ? fmt::format(" in {} groups", groups) : "", input[1],
                             context.describe(0)));
  }
  if (context.input_count() > 2) require_bias(context, weight[0]);
  const Window window = window_attributes(context, {weight[2], weight[3]});
  const Pair output = window_output(context, window, {input[2], input[3]}, context.describe(0));
  return {typed(dtype, {input[0], weight[0], output[0], output[1]})};
}

/// Where a convolution of images of `size` would not give the output gradient's height and width.
void require_output_size(const InferContext& context, int output_gradient, const Window& window, const Pair& size,
                         const std::string& source) {
  const Pair expected = window_output(context, window, size, source);
  const Shape& gradient = context.shape(output_gradient);
  if (gradient[2] == expected[0] && gradient[3] == expected[1]) return;
  context.fail(fmt::format("a convolution of {} gives {} x {} positions, but the output gradient is {}", source,
                           expected[0], expected[1], context.describe(output_gradient)));
}

std::vector<TensorType> infer_backward_data(const InferContext& context) {
  const DType dtype = require_images(context);
  const Shape &gradient = context.shape(0), &weight = context.shape(1);
  const int64_t groups = groups_attribute(context);
  if (gradient[1] != weight[0]) {
    context.fail(fmt::format("weight {} has {} output channels, got {} from {}", to_string(weight), weight[0],
                             gradient[1], context.describe(0)));
  }
  require_group_multiple(context, weight[0], groups, "output", "weight " + to_string(weight));
  require_filters(context, weight, groups);
  const Pair size = pair_attribute(context, "input_size", 1);
  const Window window = window_attributes(context, {weight[2], weight[3]});
  require_output_size(context, 0, window, size, fmt::format("an image of {} x {}", size[0], size[1]));
  return {typed(dtype, {gradient[0], weight[1] * groups, size[0], size[1]})};
}

std::vector<TensorType> infer_backward_weights(const InferContext& context) {
  const DType dtype = require_images(context);
  const Shape &input = context.shape(0), &gradient = context.shape(1);
  const int64_t groups = groups_attribute(context);
  if (input[0] != gradient[0]) {
    context.fail(fmt::format("{} holds {} images, but the output gradient {} holds {}", context.describe(0), input[0],
                             context.describe(1), gradient[0]));
  }
  require_group_multiple(context, input[1], groups, "input", context.describe(0));
  require_group_multiple(context, gradient[1], groups, "output", context.describe(1));
  const Pair kernel = pair_attribute(context, "kernel", 1);
  require_output_size(context, 1, window_attributes(context, kernel), {input[2], input[3]}, context.describe(0));
  const TensorType weights =
      typed(result_dtype(context, dtype), {gradient[1], input[1] / groups, kernel[0], kernel[1]});
  if (!context.attributes.boolean("bias_gradient")) return {weights};
  return {weights, f32({gradient[1]})};
}

/// A multiply-add per output element and weight of its output channel; padding is counted as if it were multiplied.
int64_t conv_flops(const Shape& output, const Shape& weight) {
  return 2 * output.elements() * weight[1] * weight[2] * weight[3];
}

ValueId backward_data(Graph& graph, ValueId output_gradient, ValueId weight, const Attributes& options,
                      const Shape& input, const std::string& name) {
  return graph.add("conv2d_backward_data", {output_gradient, weight}, with(options, "input_size", input[2], input[3]),
                   name);
}

ValueId backward_weights(Graph& graph, ValueId input, ValueId output_gradient, const Attributes& options,
                         const Shape& weight, const std::string& name) {
  return graph.add("conv2d_backward_weights", {input, output_gradient}, with(options, "kernel", weight[2], weight[3]),
                   name);
}

std::vector<ValueId> grad_conv2d(GradContext& context) {
  Graph& graph = context.graph;
  const Attributes options = attributes_of(context);
  const ValueId input = context.inputs[0], weight = context.inputs[1], gradient = context.output_gradients[0];
  const Shape input_shape = graph.shape(input), weight_shape = graph.shape(weight);
  const std::string input_name = gradient_name(context, "input"), weight_name = gradient_name(context, "weight");
  std::vector<ValueId> gradients = {backward_data(graph, gradient, weight, options, input_shape, input_name),
                                    backward_weights(graph, input, gradient, options, weight_shape, weight_name)};
  if (context.inputs.size() > 2) {
    Attributes sum{{"axes", std::vector<int64_t>{0, 2, 3}}};
    if (graph.type(gradient).dtype != DType::f32) sum.set("result_dtype", std::string("f32"));  // as the bias
    gradients.push_back(graph.add("reduce_sum", {gradient}, sum, gradient_name(context, "bias")));
  }
  return gradients;
}

std::vector<ValueId> grad_backward_data(GradContext& context) {
  Graph& graph = context.graph;
  const Attributes options = without(attributes_of(context), "input_size");
  const ValueId output_gradient = context.inputs[0], weight = context.inputs[1], outer = context.output_gradients[0];
  const Shape weight_shape = graph.shape(weight);
  const std::string gradient_hint = gradient_name(context, "output_gradient");
  const std::string weight_hint = gradient_name(context, "weight");
  return {graph.add("conv2d", {outer, weight}, options, gradient_hint),
          backward_weights(graph, outer, output_gradient, options, weight_shape, weight_hint)};
}

/// Of the two results: a sum of what comes from either.
std::vector<ValueId> grad_backward_weights(GradContext& context) {
  Graph& graph = context.graph;
  Attributes options = attributes_of(context);
  for (const char* own : {"kernel", "bias_gradient", "result_dtype"}) options.erase(own);
  const ValueId input = context.inputs[0], output_gradient = context.inputs[1];
  const Shape input_shape = graph.shape(input), gradient_shape = graph.shape(output_gradient);
  const DType dtype = graph.type(input).dtype;
  const std::string input_hint = gradient_name(context, "input");
  const std::string gradient_hint = gradient_name(context, "output_gradient");
  ValueId of_input, of_gradient;
  if (context.output_gradients[0].valid()) {
    const ValueId outer = as_dtype(graph, context.output_gradients[0], dtype);
    of_input = backward_data(graph, output_gradient, outer, options, input_shape, input_hint);
    of_gradient = graph.add("conv2d", {input, outer}, options, gradient_hint);
  }
  if (context.outputs.size() > 1 && context.output_gradients[1].valid()) {
    const ValueId sums = as_dtype(graph, context.output_gradients[1], dtype);
    const ValueId channels = reshape(graph, sums, {1, gradient_shape[1], 1, 1});
    of_gradient = of_gradient.valid() ? add(graph, of_gradient, channels, gradient_hint)
                                      : broadcast_to(graph, channels, gradient_shape, gradient_hint);
  }
  return {of_input, of_gradient};
}

/// Labels of images, input channels, output channels.
constexpr int kImages = 0, kInputs = 1, kOutputs = 2, kNone = DimensionRule::kWhole;

/// Those of the channels where these are cut into groups: of a depthwise convolution the same, else none.
std::pair<int, int> channel_labels(const DimensionContext& context, int64_t outputs) {
  const int64_t groups = context.attributes.integer("groups");
  if (groups == 1) return {kInputs, kOutputs};
  return groups == context.inputs[0].shape[1] && groups == outputs ? std::pair{kInputs, kInputs}
                                                                   : std::pair{kNone, kNone};
}
std::vector<int> weight_labels(const DimensionContext& context, const std::pair<int, int>& channels) {
  return {channels.second, context.attributes.integer("groups") == 1 ? channels.first : kNone, kNone, kNone};
}

DimensionRule conv2d_dimensions(const DimensionContext& context) {
  auto [inputs, outputs] = channel_labels(context, context.inputs[1].shape[0]);
  // Each rank would add the bias.
  if (context.inputs.size() > 2 && inputs != outputs) inputs = kNone;
  DimensionRule rule;
  rule.inputs = {{kImages, inputs, kNone, kNone}, weight_labels(context, {inputs, outputs})};
  if (context.inputs.size() > 2) rule.inputs.push_back({outputs});
  rule.outputs = {{kImages, outputs, kNone, kNone}};
  return rule;
}

DimensionRule backward_data_dimensions(const DimensionContext& context) {
  const auto channels = channel_labels(context, context.outputs[0].shape[1]);
  DimensionRule rule;
  rule.inputs = {{kImages, channels.second, kNone, kNone}, weight_labels(context, channels)};
  rule.outputs = {{kImages, channels.first, kNone, kNone}};
  return rule;
}

DimensionRule backward_weights_dimensions(const DimensionContext& context) {
  auto channels = channel_labels(context, context.inputs[1].shape[1]);
  const bool has_bias = context.outputs.size() > 1;
  if (has_bias && channels.first != channels.second) channels.first = kNone;
  DimensionRule rule;
  rule.inputs = {{kImages, channels.first, kNone, kNone}, {kImages, channels.second, kNone, kNone}};
  rule.outputs = {weight_labels(context, channels)};
  if (has_bias) rule.outputs.push_back({channels.second});
  return rule;
}

/// A depthwise convolution of some of the channels.
void take_groups(Attributes& attributes, const PartContext& context) {
  const int64_t groups = attributes.integer("groups");
  if (groups > 1) attributes.set("groups", groups * context.inputs[0][1] / context.whole.inputs[0].shape[1]);
}

struct ConvCase {
  std::string label;
  Shape input, weight;
  Conv2dOptions options;

  Shape output() const {
    Shape shape{input[0], weight[0], 0, 0};
    for (int axis = 0; axis < 2; ++axis) {
      const auto i = static_cast<size_t>(axis);
      shape[axis + 2] = window_positions(input[axis + 2], weight[axis + 2], options.stride[i], options.padding[i],
                                         options.dilation[i]);
    }
    return shape;
  }
};

/// One list for the three ops, so that what the forward op does is checked of its gradients too.
std::vector<ConvCase> conv_cases() {
  return {
      {"3x3, same size", {2, 3, 6, 6}, {4, 3, 3, 3}, {.padding = {1, 1}}},
      {"1x1, channels multiples of 16", {2, 16, 3, 3}, {32, 16, 1, 1}, {}},
      {"1x1 with stride", {2, 8, 5, 5}, {16, 8, 1, 1}, {.stride = {2, 2}}},
      {"3x3, 16 channels", {1, 16, 4, 4}, {16, 16, 3, 3}, {.padding = {1, 1}}},
      {"3x3, 17 to 5 channels", {1, 17, 4, 4}, {5, 17, 3, 3}, {.padding = {1, 1}}},
      {"stride 2, odd size", {1, 2, 7, 5}, {3, 2, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
      {"stride 2 that leaves a rest", {1, 2, 6, 6}, {2, 2, 3, 3}, {.stride = {2, 2}}},
      {"stem: 7x7, stride 2, padding 3", {1, 3, 9, 9}, {4, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
      {"one input channel, 5x5", {2, 1, 8, 8}, {6, 1, 5, 5}, {.padding = {2, 2}}},
      {"dilated", {1, 2, 8, 8}, {3, 2, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}}},
      {"uneven", {1, 2, 7, 9}, {2, 2, 2, 3}, {.stride = {2, 1}, .padding = {0, 2}, .dilation = {1, 2}}},
      {"two groups", {2, 4, 5, 5}, {6, 2, 3, 3}, {.padding = {1, 1}, .groups = 2}},
      {"depthwise", {1, 5, 6, 6}, {5, 1, 3, 3}, {.padding = {1, 1}, .groups = 5}},
      {"depthwise, 16 channels, stride 2", {1, 16, 5, 5}, {16, 1, 3, 3}, {{2, 2}, {1, 1}, {1, 1}, 16}},
      {"depthwise, two outputs per channel", {1, 3, 5, 5}, {6, 1, 3, 3}, {.groups = 3}},
      {"kernel as large as the image", {3, 2, 4, 4}, {3, 2, 4, 4}, {}},
  };
}

/// Those that oneDNN serves in different ways.
std::vector<ConvCase> conv_cases_with_bias() {
  return {
      {"3x3", {2, 16, 6, 6}, {32, 16, 3, 3}, {.padding = {1, 1}}},
      {"6 channels of 1", {3, 1, 8, 8}, {6, 1, 5, 5}, {.padding = {2, 2}}},
      {"1x1", {2, 16, 3, 3}, {5, 16, 1, 1}, {}},
      {"two groups, strided", {2, 4, 5, 5}, {6, 2, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2}},
      {"depthwise", {1, 16, 6, 6}, {16, 1, 3, 3}, {.padding = {1, 1}, .groups = 16}},
  };
}

std::vector<OpExample> conv_examples() {
  std::vector<OpExample> examples;
  for (const ConvCase& c : conv_cases()) {
    examples.push_back({c.label, {f32(c.input), f32(c.weight)}, to_attributes(c.options), {}});
  }
  for (const ConvCase& c : conv_cases_with_bias())
    examples.push_back(
        {c.label + ", with a bias", {f32(c.input), f32(c.weight), f32({c.weight[0]})}, to_attributes(c.options), {}});
  return examples;
}

std::vector<TensorType> infer_fused_conv2d(const InferContext& context) {
  std::vector<TensorType> outputs = infer_conv2d(context);
  const std::string& activation = context.attributes.text("activation");
  if (activation != "none" && activation != "relu" && activation != "relu6")
    context.fail(fmt::format("activation is none, relu or relu6, got '{}'", activation));
  if (context.input_count() < 4) return outputs;
  context.require_dtype(3, outputs[0].dtype);
  if (context.shape(3) != outputs[0].shape)
    context.fail(fmt::format("the residual {} is added to images {}; both must have one shape", context.describe(3),
                             to_string(outputs[0].shape)));
  return outputs;
}

std::vector<OpExample> fused_examples() {
  // Sums of a few products in the middle of what relu6 lets through, with a few below and above.
  const OpExample::Range wide{-1, 1}, bias{-2, 8};
  std::vector<OpExample> examples;
  for (const ConvCase& c : conv_cases_with_bias())
    for (const char* activation : {"none", "relu", "relu6"})
      for (const bool has_residual : {false, true}) {
        Attributes attributes = to_attributes(c.options);
        attributes.set("activation", std::string(activation));
        OpExample example{c.label + ", " + activation + (has_residual ? ", with a residual" : ""),
                          {f32(c.input), f32(c.weight), f32({c.weight[0]})},
                          std::move(attributes),
                          {wide, wide, bias}};
        if (has_residual) {
          example.inputs.push_back(f32(c.output()));
          example.ranges.push_back(wide);
        }
        examples.push_back(std::move(example));
      }
  // Which has kernels of its own.
  const ConvCase few{"few positions by many weights", {1, 512, 2, 3}, {64, 512, 3, 3}, {.padding = {1, 1}}};
  Attributes attributes = to_attributes(few.options);
  attributes.set("activation", std::string("relu"));
  examples.push_back({few.label,
                      {f32(few.input), f32(few.weight), f32({few.weight[0]}), f32(few.output())},
                      std::move(attributes),
                      {wide, wide, bias, wide}});
  return examples;
}

OpDef fused_conv_op() {
  OpDef op;
  op.name = "fused_conv2d";
  op.summary =
      "activation(conv2d(input, weight, bias) + residual), rounded once; for inference: made by the pass "
      "fuse_conv_epilogue only.";
  op.inputs = {"input", "weight", "bias", "residual?"};
  op.outputs = {"output"};
  op.attributes = conv_attributes();
  op.attributes.push_back(attribute("activation", std::string("none"), "applied to the sum: none, relu or relu6"));
  op.infer = infer_fused_conv2d;
  op.flops = [](const auto& inputs, const auto& outputs, const Attributes& attributes) {
    const int64_t extra = (inputs.size() > 3 ? 1 : 0) + (attributes.text("activation") != "none" ? 1 : 0);
    return conv_flops(outputs[0].shape, inputs[1].shape) + extra * outputs[0].shape.elements();
  };
  op.layout_rule = LayoutRule::kernel;
  op.precision = PrecisionRule::reduced;
  op.f32_inputs = {2};
  op.examples = fused_examples();
  return of_work(work::kConvolution, std::move(op));
}

std::vector<OpExample> backward_data_examples() {
  std::vector<OpExample> examples;
  for (const ConvCase& c : conv_cases()) {
    const Attributes attributes = with(to_attributes(c.options), "input_size", c.input[2], c.input[3]);
    examples.push_back({c.label, {f32(c.output()), f32(c.weight)}, attributes, {}});
  }
  return examples;
}

std::vector<OpExample> backward_weights_examples() {
  std::vector<OpExample> examples;
  for (const ConvCase& c : conv_cases()) {
    const Attributes attributes = with(to_attributes(c.options), "kernel", c.weight[2], c.weight[3]);
    examples.push_back({c.label, {f32(c.input), f32(c.output())}, attributes, {}});
  }
  for (const ConvCase& c : conv_cases_with_bias()) {
    Attributes attributes = with(to_attributes(c.options), "kernel", c.weight[2], c.weight[3]);
    attributes.set("bias_gradient", true);
    examples.push_back({c.label + ", with a bias", {f32(c.input), f32(c.output())}, attributes, {}});
  }
  return examples;
}

}  // namespace

void add_conv_ops(OpRegistry& registry) {
  OpDef conv;
  conv.name = "conv2d";
  conv.summary =
      "Convolution of images [N,C,H,W] with weights [O,C/groups,KH,KW] (as in PyTorch: no kernel flip), plus a bias "
      "[O].";
  conv.inputs = {"input", "weight", "bias?"};
  conv.outputs = {"output"};
  conv.attributes = conv_attributes();
  conv.infer = infer_conv2d;
  conv.gradient = grad_conv2d;
  conv.dimensions = conv2d_dimensions;
  conv.of_part = take_groups;
  conv.flops = [](const auto& inputs, const auto& outputs, const Attributes&) {
    return conv_flops(outputs[0].shape, inputs[1].shape);
  };
  conv.layout_rule = LayoutRule::kernel;
  conv.precision = PrecisionRule::reduced;
  conv.f32_inputs = {2};
  conv.examples = conv_examples();
  registry.add(of_work(work::kConvolution, std::move(conv)));
  registry.add(fused_conv_op());

  OpDef data;
  data.name = "conv2d_backward_data";
  data.summary = "Gradient of conv2d with respect to its input; also the transposed convolution.";
  data.inputs = {"output_gradient", "weight"};
  data.outputs = {"input_gradient"};
  data.attributes = conv_attributes();
  data.attributes.push_back(
      required_attribute("input_size", std::vector<int64_t>{8, 8}, "height and width of the convolution's input"));
  data.infer = infer_backward_data;
  data.gradient = grad_backward_data;
  data.dimensions = backward_data_dimensions;
  data.of_part = take_groups;
  data.flops = [](const auto& inputs, const auto&, const Attributes&) {
    return conv_flops(inputs[0].shape, inputs[1].shape);
  };
  data.layout_rule = LayoutRule::kernel;
  data.precision = PrecisionRule::reduced;
  data.examples = backward_data_examples();
  registry.add(of_work(work::kConvolutionData, std::move(data)));

  OpDef weights;
  weights.name = "conv2d_backward_weights";
  weights.summary = "Gradient of conv2d with respect to its weight and, where asked for, its bias.";
  weights.inputs = {"input", "output_gradient"};
  weights.outputs = {"weight_gradient", "bias_gradient"};
  weights.attributes = conv_attributes();
  weights.attributes.push_back(
      required_attribute("kernel", std::vector<int64_t>{3, 3}, "height and width of the weight"));
  weights.attributes.push_back(attribute("bias_gradient", false, "a second result: the gradient of the bias, [O]"));
  weights.attributes.push_back(result_dtype_attribute());
  weights.infer = infer_backward_weights;
  weights.gradient = grad_backward_weights;
  weights.dimensions = backward_weights_dimensions;
  weights.of_part = take_groups;
  weights.flops = [](const auto& inputs, const auto& outputs, const Attributes&) {
    return conv_flops(inputs[1].shape, outputs[0].shape);
  };
  weights.layout_rule = LayoutRule::kernel;
  weights.precision = PrecisionRule::reduced;
  weights.examples = backward_weights_examples();
  registry.add(of_work(work::kConvolutionWeights, std::move(weights)));
}

ValueId conv2d(Graph& graph, ValueId input, ValueId weight, const Conv2dOptions& options, const std::string& name) {
  return graph.add("conv2d", {input, weight}, to_attributes(options), name);
}

}  // namespace weft::ops
