#include "weft/ops/window.h"

#include "weft/base/error.h"

namespace weft::ops {

Pair pair_attribute(const InferContext& context, const std::string& name, int64_t minimum) {
  const std::vector<int64_t>& list = context.attributes.integers(name);
  if (list.size() != 2) {
    context.fail(fmt::format("{} takes two numbers (height, width), got {}", name, to_string(AttributeValue(list))));
  }
  if (list[0] < minimum || list[1] < minimum) {
    context.fail(fmt::format("{} must be at least {}, got {}", name, minimum, to_string(AttributeValue(list))));
  }
  // Sums of a few stay far from overflow.
  if (list[0] > kMostElements || list[1] > kMostElements) {
    context.fail(fmt::format("{} must be at most {}, got {}", name, kMostElements, to_string(AttributeValue(list))));
  }
  return {list[0], list[1]};
}

Window window_attributes(const InferContext& context, const Pair& kernel) {
  Window window;
  window.kernel = kernel;
  window.stride = pair_attribute(context, "stride", 1);
  window.padding = pair_attribute(context, "padding", 0);
  if (context.attributes.has("dilation")) window.dilation = pair_attribute(context, "dilation", 1);
  for (size_t axis = 0; axis < 2; ++axis)
    if (!has_bounded_size({window.kernel[axis], window.dilation[axis]}))
      context.fail(fmt::format("a dilation of {} puts a kernel of {} out of every image", window.dilation[axis],
                               window.kernel[axis]));
  return window;
}

Pair window_output(const InferContext& context, const Window& window, const Pair& size, const std::string& source) {
  Pair output;
  for (size_t axis = 0; axis < 2; ++axis) {
    output[axis] = window_positions(size[axis], window.kernel[axis], window.stride[axis], window.padding[axis],
                                    window.dilation[axis]);
    if (output[axis] > 0) continue;
    const int64_t extent = window.dilation[axis] * (window.kernel[axis] - 1) + 1;
    context.fail(fmt::format(
        "a kernel of {} {} does not fit into {} with padding {}: {} + 2 x {} = {}; pad more, or give larger images",
        extent, axis == 0 ? "rows" : "columns", source, window.padding[axis], size[axis], window.padding[axis],
        size[axis] + 2 * window.padding[axis]));
  }
  return output;
}

bool has_winograd_windows(const Shape& weights, const Pair& stride, const Pair& dilation, int64_t groups) {
  return weights[2] == 3 && weights[3] == 3 && stride == Pair{1, 1} && dilation == Pair{1, 1} && groups == 1;
}

bool has_winograd_windows(const Shape& weights, const Attributes& attributes) {
  const auto pair = [&](const char* name) {
    const std::vector<int64_t>& list = attributes.integers(name);
    return Pair{list[0], list[1]};
  };
  return has_winograd_windows(weights, pair("stride"), pair("dilation"), attributes.integer("groups"));
}

}  // namespace weft::ops
