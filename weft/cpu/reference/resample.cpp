// Interpolation and adaptive average pooling: every output pixel is a sum of weighted input pixels, and the gradient
// sends its share back to each of them.
#include "weft/ops/resample.h"

#include <algorithm>
#include <cmath>

#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

// Each calls visit(source, weight) for what pixel `at` of `outputs` is made of, along one axis of `inputs` pixels.

struct Nearest {
  template <typename Visit>
  void operator()(int64_t at, int64_t inputs, int64_t outputs, Visit&& visit) const {
    visit(ops::nearest_pixel(at, inputs, outputs), 1.0);
  }
};

/// Pixels are areas: the centres of both images' first pixels do not coincide (PyTorch's align_corners=False).
struct Linear {
  template <typename Visit>
  void operator()(int64_t at, int64_t inputs, int64_t outputs, Visit&& visit) const {
    const double scale = static_cast<double>(inputs) / static_cast<double>(outputs);
    const double position = std::max(0.0, (static_cast<double>(at) + 0.5) * scale - 0.5);
    const auto first = static_cast<int64_t>(position);
    const double share = position - static_cast<double>(first);
    visit(first, 1 - share);
    if (share > 0) visit(std::min(first + 1, inputs - 1), share);
  }
};

struct Average {
  template <typename Visit>
  void operator()(int64_t at, int64_t inputs, int64_t outputs, Visit&& visit) const {
    const int64_t begin = at * inputs / outputs, end = ((at + 1) * inputs + outputs - 1) / outputs;
    for (int64_t source = begin; source < end; ++source) visit(source, 1 / static_cast<double>(end - begin));
  }
};

/// Calls visit(input pixel, output pixel, weight) for every pair that belongs together, in planes of these sizes.
template <typename Axis, typename Visit>
void for_each_pair(const Axis& axis, const Shape& in, const Shape& out, Visit&& visit) {
  for (int64_t y = 0; y < out[2]; ++y)
    axis(y, in[2], out[2], [&](int64_t from_y, double weight_y) {
      for (int64_t x = 0; x < out[3]; ++x)
        axis(x, in[3], out[3], [&](int64_t from_x, double weight_x) {
          visit(from_y * in[3] + from_x, y * out[3] + x, weight_y * weight_x);
        });
    });
}

template <typename Axis>
Body prepare(const NodeSignature& node, const Axis& axis, bool backward) {
  const Shape from = node.inputs[0].shape, to = node.outputs[0].shape;
  // Forward: input -> output. Backward: the operand has the output's size.
  const Shape &in = backward ? to : from, &out = backward ? from : to;
  const int64_t planes = from[0] * from[1], in_pixels = in[2] * in[3], out_pixels = out[2] * out[3];
  return [=, sums = std::vector<double>(static_cast<size_t>(to[2] * to[3]))](const KernelArguments& call) mutable {
    for (int64_t plane = 0; plane < planes; ++plane) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const float* source = input(call, 0) + plane * (backward ? out_pixels : in_pixels);
      for_each_pair(axis, in, out, [&](int64_t in_pixel, int64_t out_pixel, double weight) {
        const int64_t read = backward ? out_pixel : in_pixel, written = backward ? in_pixel : out_pixel;
        sums[static_cast<size_t>(written)] += weight * static_cast<double>(source[read]);
      });
      float* target = output(call, 0) + plane * static_cast<int64_t>(sums.size());
      for (size_t pixel = 0; pixel < sums.size(); ++pixel) target[pixel] = static_cast<float>(sums[pixel]);
    }
  };
}

}  // namespace

void add_resample(KernelTable& table) {
  for (const bool backward : {false, true}) {
    const std::string suffix = backward ? "_backward" : "";
    add_plain(table, "resize" + suffix, [backward](const NodeSignature& node) {
      return node.attributes.text("mode") == "nearest" ? prepare(node, Nearest(), backward)
                                                       : prepare(node, Linear(), backward);
    });
    add_plain(table, "adaptive_avg_pool2d" + suffix,
              [backward](const NodeSignature& node) { return prepare(node, Average(), backward); });
  }
}

}  // namespace weft::reference
