// Pooling over windows of an image, and its gradients.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

/// The windows of one pooling; every plane (one image, one channel) is pooled by itself.
struct PoolGeometry {
  int64_t planes, height, width, out_height, out_width;
  int64_t kernel[2], stride[2], padding[2];

  PoolGeometry(const Shape& in, const Shape& out, const Attributes& attributes)
      : planes(in[0] * in[1]), height(in[2]), width(in[3]), out_height(out[2]), out_width(out[3]) {
    for (size_t axis = 0; axis < 2; ++axis) {
      kernel[axis] = attributes.integers("kernel")[axis];
      stride[axis] = attributes.integers("stride")[axis];
      padding[axis] = attributes.integers("padding")[axis];
    }
  }
  int64_t in_plane() const { return height * width; }
  int64_t out_plane() const { return out_height * out_width; }
  /// Calls visit(offset within the plane) for the elements of window (y, x) that lie inside, in row-major order.
  template <typename Visit>
  void for_window(int64_t y, int64_t x, Visit&& visit) const {
    const int64_t top = y * stride[0] - padding[0], left = x * stride[1] - padding[1];
    for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + kernel[0], height); ++h)
      for (int64_t w = std::max<int64_t>(left, 0); w < std::min(left + kernel[1], width); ++w) visit(h * width + w);
  }
  /// Calls visit(plane, y, x) for every window.
  template <typename Visit>
  void for_each_window(Visit&& visit) const {
    for (int64_t plane = 0; plane < planes; ++plane)
      for (int64_t y = 0; y < out_height; ++y)
        for (int64_t x = 0; x < out_width; ++x) visit(plane, y, x);
  }
  /// The first NaN of a window, else its first maximum, as an offset within the plane; -1 where the window lies
  /// outside.
  int64_t find_maximum(const float* in, int64_t y, int64_t x) const {
    int64_t best = -1;
    for_window(y, x, [&](int64_t at) {
      if (best < 0 || (!std::isnan(in[best]) && (in[at] > in[best] || std::isnan(in[at])))) best = at;
    });
    return best;
  }
  double divisor(int64_t y, int64_t x, bool count_padding) const {
    if (count_padding) return static_cast<double>(kernel[0] * kernel[1]);
    double inside = 0;
    for_window(y, x, [&](int64_t) { inside += 1; });
    return std::max(inside, 1.0);
  }
};

Body prepare_max(const NodeSignature& node) {
  const PoolGeometry g(node.inputs[0].shape, node.outputs[0].shape, node.attributes);
  return [g](const KernelArguments& call) {
    g.for_each_window([&](int64_t plane, int64_t y, int64_t x) {
      const float* in = input(call, 0) + plane * g.in_plane();
      const int64_t best = g.find_maximum(in, y, x);
      output(call, 0)[plane * g.out_plane() + y * g.out_width + x] =
          best < 0 ? -std::numeric_limits<float>::infinity() : in[best];
    });
  };
}

/// Of i8 or u8.
template <typename T>
Body prepare_byte_max(const NodeSignature& node) {
  const PoolGeometry g(node.inputs[0].shape, node.outputs[0].shape, node.attributes);
  return [g](const KernelArguments& call) {
    g.for_each_window([&](int64_t plane, int64_t y, int64_t x) {
      const T* in = input<T>(call, 0) + plane * g.in_plane();
      T best = std::numeric_limits<T>::lowest();
      g.for_window(y, x, [&](int64_t at) { best = std::max(best, in[at]); });
      output<T>(call, 0)[plane * g.out_plane() + y * g.out_width + x] = best;
    });
  };
}

Body prepare_max_backward(const NodeSignature& node) {
  const PoolGeometry g(node.inputs[1].shape, node.inputs[0].shape, node.attributes);
  return [g](const KernelArguments& call) {
    const float *dy = input(call, 0), *in = input(call, 1);
    float* dx = output(call, 0);
    std::fill(dx, dx + g.planes * g.in_plane(), 0.0f);
    g.for_each_window([&](int64_t plane, int64_t y, int64_t x) {
      const int64_t best = g.find_maximum(in + plane * g.in_plane(), y, x);
      if (best >= 0) dx[plane * g.in_plane() + best] += dy[plane * g.out_plane() + y * g.out_width + x];
    });
  };
}

Body prepare_average(const NodeSignature& node) {
  const PoolGeometry g(node.inputs[0].shape, node.outputs[0].shape, node.attributes);
  const bool count_padding = node.attributes.boolean("count_padding");
  return [=](const KernelArguments& call) {
    g.for_each_window([&](int64_t plane, int64_t y, int64_t x) {
      const float* in = input(call, 0) + plane * g.in_plane();
      double sum = 0;
      g.for_window(y, x, [&](int64_t at) { sum += static_cast<double>(in[at]); });
      output(call, 0)[plane * g.out_plane() + y * g.out_width + x] =
          static_cast<float>(sum / g.divisor(y, x, count_padding));
    });
  };
}

Body prepare_average_backward(const NodeSignature& node) {
  const PoolGeometry g(node.outputs[0].shape, node.inputs[0].shape, node.attributes);
  const bool count_padding = node.attributes.boolean("count_padding");
  return [=](const KernelArguments& call) {
    const float* dy = input(call, 0);
    float* dx = output(call, 0);
    std::fill(dx, dx + g.planes * g.in_plane(), 0.0f);
    g.for_each_window([&](int64_t plane, int64_t y, int64_t x) {
      const double share =
          static_cast<double>(dy[plane * g.out_plane() + y * g.out_width + x]) / g.divisor(y, x, count_padding);
      g.for_window(y, x, [&](int64_t at) { dx[plane * g.in_plane() + at] += static_cast<float>(share); });
    });
  };
}

}  // namespace

void add_pool(KernelTable& table) {
  add_numbers(table, "max_pool2d", prepare_max, [](const NodeSignature& node) {
    return node.inputs[0].dtype == DType::i8 ? prepare_byte_max<int8_t>(node) : prepare_byte_max<uint8_t>(node);
  });
  add_plain(table, "max_pool2d_backward", prepare_max_backward);
  add_plain(table, "avg_pool2d", prepare_average);
  add_plain(table, "avg_pool2d_backward", prepare_average_backward);
}

}  // namespace weft::reference
