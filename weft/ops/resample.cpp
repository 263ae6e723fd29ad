// Images of another size: nearest and bilinear interpolation, adaptive average pooling, and their gradients. All are
// linear, and each one's gradient has the op itself as its gradient.
#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"
#include "weft/ops/window.h"

namespace weft::ops {

namespace {

using List = std::vector<int64_t>;

std::vector<TensorType> infer_size(const InferContext& context, const char* attribute) {
  context.require_rank(0, 4);
  const DType dtype = context.require_compute_dtype(0);
  const Shape& image = context.shape(0);
  if (image[2] < 1 || image[3] < 1) context.fail(fmt::format("{} has no pixels", context.describe(0)));
  const Pair size = pair_attribute(context, attribute, 1);
  return {typed(dtype, {image[0], image[1], size[0], size[1]})};
}

void require_mode(const InferContext& context) {
  const std::string& mode = context.attributes.text("mode");
  if (mode != "nearest" && mode != "bilinear")
    context.fail(fmt::format("mode \"{}\" is not known; give \"nearest\" or \"bilinear\"", mode));
}

AttributeSpec size_attribute() { return required_attribute("size", List{8, 8}, "height and width of the result"); }
AttributeSpec input_size_attribute() {
  return required_attribute("input_size", List{8, 8}, "height and width of the op's input");
}
AttributeSpec mode_attribute() {
  return attribute("mode", "nearest", "nearest, or bilinear with pixels as areas (PyTorch's align_corners=False)");
}

/// The gradient op of node `context`, for an input of its size; `kept` is copied to it.
std::vector<ValueId> grad_forward(GradContext& context, const std::string& op) {
  const Shape& input = context.graph.shape(context.inputs[0]);
  Attributes attributes = attributes_of(context);
  attributes.erase("size");
  attributes.set("input_size", List{input[2], input[3]});
  return {context.graph.add(op, {context.output_gradients[0]}, attributes, gradient_name(context, "input"))};
}

std::vector<ValueId> grad_backward(GradContext& context, const std::string& op) {
  const Shape& input = context.graph.shape(context.inputs[0]);
  Attributes attributes = attributes_of(context);
  attributes.erase("input_size");
  attributes.set("size", List{input[2], input[3]});
  return {context.graph.add(op, {context.output_gradients[0]}, attributes, gradient_name(context, "output_gradient"))};
}

/// The op `name` and its gradient, but for their examples' further attributes.
OpDef resampler(std::string name, std::string summary, const std::string& gradient_op) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {"input"};
  op.outputs = {"output"};
  op.attributes = {size_attribute()};
  op.infer = [](const InferContext& context) { return infer_size(context, "size"); };
  op.gradient = [gradient_op](GradContext& context) { return grad_forward(context, gradient_op); };
  op.layout_rule = LayoutRule::channelwise;
  op.precision = PrecisionRule::follow;
  return op;
}
OpDef resampler_backward(std::string name, std::string summary, const std::string& forward_op) {
  OpDef op = resampler(std::move(name), std::move(summary), "");
  op.inputs = {"output_gradient"};
  op.outputs = {"input_gradient"};
  op.attributes = {input_size_attribute()};
  op.infer = [](const InferContext& context) { return infer_size(context, "input_size"); };
  op.gradient = [forward_op](GradContext& context) { return grad_backward(context, forward_op); };
  return op;
}

struct SizeCase {
  std::string label;
  Shape small, large;  // the sizes are those of axes 2 and 3
};
std::vector<SizeCase> size_cases() {
  return {{"twice the size", {2, 3, 3, 2}, {2, 3, 6, 4}},
          {"sizes without a common divisor", {1, 2, 3, 5}, {1, 2, 7, 8}},
          {"16 channels", {1, 16, 2, 3}, {1, 16, 5, 3}},
          {"one pixel", {2, 5, 1, 1}, {2, 5, 4, 3}}};
}

/// Both directions of every case, in each mode (none where `modes` is empty).
std::vector<OpExample> resample_examples(const char* size_name, const std::vector<std::string>& modes, bool backward) {
  std::vector<OpExample> examples;
  for (const SizeCase& c : size_cases())
    for (const bool grows : {true, false}) {
      // A gradient has the size of the op's output, and gives the size of its input.
      const Shape& from = grows != backward ? c.small : c.large;
      const Shape& to = grows != backward ? c.large : c.small;
      OpExample example{
          c.label + (grows ? ", larger" : ", smaller"), {f32(from)}, {{size_name, List{to[2], to[3]}}}, {}};
      if (modes.empty()) examples.push_back(example);
      for (const std::string& mode : modes) {
        examples.push_back(example);
        examples.back().label += ", " + mode;
        examples.back().attributes.set("mode", mode);
      }
    }
  return examples;
}

OpDef with_mode(OpDef op) {
  op.attributes.push_back(mode_attribute());
  op.infer = [infer = std::move(op.infer)](const InferContext& context) {
    require_mode(context);
    return infer(context);
  };
  // Two multiply-adds along the width of two rows, and one between them; the nearest costs no arithmetic.
  op.flops = [](const auto& inputs, const auto& outputs, const Attributes& attributes) {
    const int64_t larger = std::max(inputs[0].elements(), outputs[0].elements());
    return attributes.text("mode") == "bilinear" ? 8 * larger : larger;
  };
  return op;
}

}  // namespace

void add_resample_ops(OpRegistry& registry) {
  OpDef resize = with_mode(
      resampler("resize", "An image interpolated to another size (as torch's interpolate).", "resize_backward"));
  resize.examples = resample_examples("size", {"nearest", "bilinear"}, false);
  registry.add(of_work(work::kCopies, std::move(resize)));
  OpDef resize_backward = with_mode(resampler_backward(
      "resize_backward", "Gradient of resize: each number spread over the pixels that it was made of.", "resize"));
  resize_backward.examples = resample_examples("input_size", {"nearest", "bilinear"}, true);
  registry.add(of_work(work::kCopies, std::move(resize_backward)));

  const auto flops = [](const auto& inputs, const auto& outputs, const Attributes&) {
    return 2 * std::max(inputs[0].elements(), outputs[0].elements());
  };
  OpDef pool = resampler("adaptive_avg_pool2d",
                         "Averages over windows that cover the image: [floor(i H / H'), ceil((i + 1) H / H')).",
                         "adaptive_avg_pool2d_backward");
  pool.flops = flops;
  pool.examples = resample_examples("size", {}, false);
  registry.add(of_work(work::kPooling, std::move(pool)));
  OpDef pool_backward = resampler_backward(
      "adaptive_avg_pool2d_backward", "Gradient of adaptive_avg_pool2d: each window's share spread over its pixels.",
      "adaptive_avg_pool2d");
  pool_backward.flops = flops;
  pool_backward.examples = resample_examples("input_size", {}, true);
  registry.add(of_work(work::kPooling, std::move(pool_backward)));
}

ValueId resize(Graph& graph, ValueId input, const Pair& size, const std::string& mode, const std::string& name) {
  return graph.add("resize", {input}, {{"size", to_list(size)}, {"mode", mode}}, name);
}

ValueId adaptive_avg_pool2d(Graph& graph, ValueId input, const Pair& size, const std::string& name) {
  const Shape& shape = graph.shape(input);
  const bool uniform = shape.rank() == 4 && size[0] > 0 && size[1] > 0 && shape[2] >= size[0] && shape[3] >= size[1] &&
                       shape[2] % size[0] == 0 && shape[3] % size[1] == 0;
  if (uniform) {
    const Pair window{shape[2] / size[0], shape[3] / size[1]};
    return avg_pool2d(graph, input, {window, window, {0, 0}}, name.empty() ? "adaptive_avg_pool2d" : name);
  }
  return graph.add("adaptive_avg_pool2d", {input}, {{"size", to_list(size)}}, name);
}

}  // namespace weft::ops
