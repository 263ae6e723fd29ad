// Maximum and average pooling of images.
#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/dimensions.h"
#include "weft/ops/window.h"

namespace weft::ops {
namespace {

/// Images and channels.
DimensionRule pool_dimensions(const DimensionContext& context) {
  const std::vector<int> labels{0, 1, DimensionRule::kWhole, DimensionRule::kWhole};
  DimensionRule rule;
  rule.inputs.assign(context.inputs.size(), labels);
  rule.outputs.assign(1, labels);
  return rule;
}

std::vector<AttributeSpec> pool_attributes() {
  return {required_attribute("kernel", std::vector<int64_t>{2, 2}, "rows and columns of a window"),
          required_attribute("stride", std::vector<int64_t>{2, 2}, "rows and columns from one window to the next"),
          attribute("padding", std::vector<int64_t>{0, 0}, "rows and columns added on each side")};
}

AttributeSpec count_padding_attribute() {
  return attribute("count_padding", true, "the average counts padding as zeros; false: it leaves padding out");
}

Window pool_window(const InferContext& context) {
  const Window window = window_attributes(context, pair_attribute(context, "kernel", 1));
  for (size_t axis = 0; axis < 2; ++axis) {
    if (window.padding[axis] < window.kernel[axis]) continue;
    context.fail(fmt::format("padding {} leaves windows of {} without any pixel; pad less than the kernel",
                             to_string(AttributeValue(to_list(window.padding))),
                             to_string(AttributeValue(to_list(window.kernel)))));
  }
  return window;
}

std::vector<TensorType> infer_pool_of(const InferContext& context, DType dtype) {
  context.require_rank(0, 4);
  const Shape& input = context.shape(0);
  const Pair size = window_output(context, pool_window(context), {input[2], input[3]}, context.describe(0));
  return {typed(dtype, {input[0], input[1], size[0], size[1]})};
}

std::vector<TensorType> infer_pool(const InferContext& context) {
  return infer_pool_of(context, context.require_compute_dtype(0));
}

/// Also of integers of 8 bits, which stand for reals in the same order.
std::vector<TensorType> infer_max_pool(const InferContext& context) {
  const DType dtype = context.dtype(0);
  const bool is_byte = dtype == DType::i8 || dtype == DType::u8;
  return infer_pool_of(context, is_byte ? dtype : context.require_compute_dtype(0));
}

/// The gradient (operand 0) of pooling an image of `size` has the pooled height and width.
void require_pooled(const InferContext& context, const Pair& size, const std::string& source) {
  const Pair pooled = window_output(context, pool_window(context), size, source);
  const Shape& gradient = context.shape(0);
  if (gradient[2] == pooled[0] && gradient[3] == pooled[1]) return;
  context.fail(fmt::format("pooling {} gives {} x {} positions, but the output gradient is {}", source, pooled[0],
                           pooled[1], context.describe(0)));
}

std::vector<TensorType> infer_max_backward(const InferContext& context) {
  const DType dtype = context.require_compute_dtype(0);
  for (const int operand : {0, 1, 2}) {
    context.require_rank(operand, 4);
    context.require_dtype(operand, dtype);
  }
  context.require_same_shape(2, 0);
  const Shape &gradient = context.shape(0), &input = context.shape(1);
  if (gradient[0] != input[0] || gradient[1] != input[1]) {
    context.fail(fmt::format("{} and {} differ in images or channels", context.describe(0), context.describe(1)));
  }
  require_pooled(context, {input[2], input[3]}, context.describe(1));
  return {typed(dtype, input)};
}

std::vector<TensorType> infer_average_backward(const InferContext& context) {
  context.require_rank(0, 4);
  const DType dtype = context.require_compute_dtype(0);
  const Pair size = pair_attribute(context, "input_size", 1);
  require_pooled(context, size, fmt::format("an image of {} x {}", size[0], size[1]));
  return {typed(dtype, {context.shape(0)[0], context.shape(0)[1], size[0], size[1]})};
}

std::vector<ValueId> grad_max_pool(GradContext& context) {
  return {context.graph.add("max_pool2d_backward", {context.output_gradients[0], context.inputs[0], context.outputs[0]},
                            attributes_of(context), gradient_name(context, "input"))};
}

std::vector<ValueId> grad_average_pool(GradContext& context) {
  Attributes attributes = attributes_of(context);
  const Shape& input = context.graph.shape(context.inputs[0]);
  attributes.set("input_size", std::vector<int64_t>{input[2], input[3]});
  return {context.graph.add("avg_pool2d_backward", {context.output_gradients[0]}, attributes,
                            gradient_name(context, "input"))};
}

/// Linear in its operand, so its gradient is the forward op.
std::vector<ValueId> grad_average_backward(GradContext& context) {
  Attributes attributes = attributes_of(context);
  attributes.erase("input_size");
  return {context.graph.add("avg_pool2d", {context.output_gradients[0]}, attributes,
                            gradient_name(context, "output_gradient"))};
}

/// One operation per window element, padding included, whichever side is the smaller one.
int64_t pool_flops(const Shape& pooled, const Attributes& attributes) {
  const std::vector<int64_t>& kernel = attributes.integers("kernel");
  return pooled.elements() * kernel[0] * kernel[1];
}

struct PoolCase {
  std::string label;
  Shape input;
  Pool2dOptions options;

  Attributes attributes() const {
    return {{"kernel", to_list(options.kernel)},
            {"stride", to_list(options.stride)},
            {"padding", to_list(options.padding)}};
  }
  Shape output() const {
    Shape shape = input;
    for (size_t axis = 0; axis < 2; ++axis) {
      const int dim = static_cast<int>(axis) + 2;
      shape[dim] = window_positions(input[dim], options.kernel[axis], options.stride[axis], options.padding[axis], 1);
    }
    return shape;
  }
};

// Few elements each: spread values of n elements lie 1/n of their range apart, and a finite difference moves one by
// 2/100 of it.
std::vector<PoolCase> pool_cases() {
  return {{"2x2", {1, 2, 4, 4}, {}},
          {"16 channels", {1, 16, 2, 1}, {{2, 1}, {1, 1}, {0, 0}}},
          {"3x3, stride 2, padding 1", {1, 1, 6, 6}, {{3, 3}, {2, 2}, {1, 1}}},
          {"odd size that leaves a rest", {1, 1, 5, 7}, {}},
          {"overlapping", {2, 1, 4, 4}, {{3, 3}, {1, 1}, {0, 0}}},
          {"uneven", {1, 1, 5, 6}, {{2, 3}, {1, 2}, {0, 1}}},
          {"whole image", {2, 3, 2, 3}, {{2, 3}, {2, 3}, {0, 0}}},
          {"gaps between windows", {1, 1, 5, 5}, {{1, 1}, {2, 2}, {0, 0}}}};
}

std::vector<OpExample> max_examples() {
  std::vector<OpExample> examples;
  for (const PoolCase& c : pool_cases()) {
    examples.push_back({c.label, {f32(c.input)}, c.attributes(), {{-1, 1, true}}});
  }
  return examples;
}

/// Input and output are all ones: every window is a tie, which its first element wins, and the operands fit together.
std::vector<OpExample> max_backward_examples() {
  std::vector<OpExample> examples;
  for (const PoolCase& c : pool_cases()) {
    examples.push_back({c.label + ", ties",
                        {f32(c.output()), f32(c.input), f32(c.output())},
                        c.attributes(),
                        {{-1, 1}, {1, 1}, {1, 1}}});
  }
  return examples;
}

std::vector<OpExample> average_examples(bool backward) {
  std::vector<OpExample> examples;
  for (const PoolCase& c : pool_cases()) {
    Attributes attributes = c.attributes();
    if (backward) attributes.set("input_size", std::vector<int64_t>{c.input[2], c.input[3]});
    const TensorType operand = f32(backward ? c.output() : c.input);
    examples.push_back({c.label, {operand}, attributes, {}});
    if (c.options.padding == Pair{0, 0}) continue;
    attributes.set("count_padding", false);
    examples.push_back({c.label + ", padding left out", {operand}, attributes, {}});
  }
  return examples;
}

Attributes to_attributes(const Pool2dOptions& options) { return PoolCase{"", {}, options}.attributes(); }

/// One window per image: [N,C,H,W] -> [N,C,1,1] -> [N,C].
ValueId global_pool(Graph& graph, const std::string& op, ValueId input, const std::string& name) {
  const Shape shape = graph.shape(input);
  if (shape.rank() != 4) {
    fail(ErrorKind::shape, "[{}] '{}': input wants 4 dimensions, got '{}' {}", op, name, graph.value(input).name,
         to_string(shape));
  }
  const Pool2dOptions whole{{shape[2], shape[3]}, {shape[2], shape[3]}, {0, 0}};
  const std::string hint = name.empty() ? "global_" + op : name;
  const ValueId pooled = graph.add(op, {input}, to_attributes(whole), hint + ".window");
  return reshape(graph, pooled, {shape[0], shape[1]}, hint);
}

}  // namespace

void add_pool_ops(OpRegistry& registry) {
  OpDef max;
  max.name = "max_pool2d";
  max.summary = "Largest element of each window of an image; padding never wins.";
  max.inputs = {"input"};
  max.outputs = {"output"};
  max.attributes = pool_attributes();
  max.infer = infer_max_pool;
  max.gradient = grad_max_pool;
  max.flops = [](const auto&, const auto& outputs, const Attributes& attributes) {
    return pool_flops(outputs[0].shape, attributes);
  };
  max.layout_rule = LayoutRule::channelwise;
  max.dimensions = pool_dimensions;
  max.precision = PrecisionRule::follow;
  max.examples = max_examples();
  for (const DType dtype : {DType::i8, DType::u8})
    max.examples.push_back({fmt::format("{}, 3x3 with stride 2", name_of(dtype)),
                            {typed(dtype, {2, 21, 7, 6})},
                            {{"kernel", std::vector<int64_t>{3, 3}},
                             {"stride", std::vector<int64_t>{2, 2}},
                             {"padding", std::vector<int64_t>{1, 1}}},
                            {dtype == DType::i8 ? OpExample::Range{-128, 128} : OpExample::Range{0, 256}}});
  registry.add(of_work(work::kPooling, std::move(max)));

  OpDef max_backward;
  max_backward.name = "max_pool2d_backward";
  max_backward.summary = "Gradient of max_pool2d: it goes to the first largest element of each window, row by row.";
  max_backward.inputs = {"output_gradient", "input", "output"};
  max_backward.outputs = {"input_gradient"};
  max_backward.attributes = pool_attributes();
  max_backward.infer = infer_max_backward;
  max_backward.flops = [](const auto& inputs, const auto&, const Attributes& attributes) {
    return pool_flops(inputs[0].shape, attributes);
  };
  max_backward.layout_rule = LayoutRule::channelwise;
  max_backward.dimensions = pool_dimensions;
  max_backward.precision = PrecisionRule::follow;
  max_backward.examples = max_backward_examples();
  registry.add(of_work(work::kPooling, std::move(max_backward)));

  OpDef average;
  average.name = "avg_pool2d";
  average.summary = "Average of each window of an image.";
  average.inputs = {"input"};
  average.outputs = {"output"};
  average.attributes = pool_attributes();
  average.attributes.push_back(count_padding_attribute());
  average.infer = infer_pool;
  average.gradient = grad_average_pool;
  average.flops = [](const auto&, const auto& outputs, const Attributes& attributes) {
    return pool_flops(outputs[0].shape, attributes);
  };
  average.layout_rule = LayoutRule::channelwise;
  average.dimensions = pool_dimensions;
  average.precision = PrecisionRule::follow;
  average.examples = average_examples(false);
  registry.add(of_work(work::kPooling, std::move(average)));

  OpDef average_backward;
  average_backward.name = "avg_pool2d_backward";
  average_backward.summary = "Gradient of avg_pool2d: each window's share spread over its elements.";
  average_backward.inputs = {"output_gradient"};
  average_backward.outputs = {"input_gradient"};
  average_backward.attributes = pool_attributes();
  average_backward.attributes.push_back(count_padding_attribute());
  average_backward.attributes.push_back(
      required_attribute("input_size", std::vector<int64_t>{8, 8}, "height and width of the pooled image"));
  average_backward.infer = infer_average_backward;
  average_backward.gradient = grad_average_backward;
  average_backward.flops = [](const auto& inputs, const auto&, const Attributes& attributes) {
    return pool_flops(inputs[0].shape, attributes);
  };
  average_backward.layout_rule = LayoutRule::channelwise;
  average_backward.dimensions = pool_dimensions;
  average_backward.precision = PrecisionRule::follow;
  average_backward.examples = average_examples(true);
  registry.add(of_work(work::kPooling, std::move(average_backward)));
}

ValueId max_pool2d(Graph& graph, ValueId input, const Pool2dOptions& options, const std::string& name) {
  return graph.add("max_pool2d", {input}, to_attributes(options), name);
}
ValueId avg_pool2d(Graph& graph, ValueId input, const Pool2dOptions& options, const std::string& name) {
  return graph.add("avg_pool2d", {input}, to_attributes(options), name);
}
ValueId global_avg_pool2d(Graph& graph, ValueId input, const std::string& name) {
  return global_pool(graph, "avg_pool2d", input, name);
}
ValueId global_max_pool2d(Graph& graph, ValueId input, const std::string& name) {
  return global_pool(graph, "max_pool2d", input, name);
}

}  // namespace weft::ops
