// Convolution by its definition, and its two gradients; each output element is one sum.
#include <algorithm>
#include <vector>

#include "weft/cpu/reference/conv_taps.h"
#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

/// All extents of one convolution, whichever of its three directions is computed.
struct ConvGeometry {
  int64_t batch, channels, height, width;       // of the input
  int64_t out_channels, out_height, out_width;  // of the output
  int64_t kernel_height, kernel_width, groups;
  int64_t stride[2], padding[2], dilation[2];

  ConvGeometry(const Shape& in, const Shape& weight, const Shape& out, const Attributes& attributes)
      : batch(in[0]),
        channels(in[1]),
        height(in[2]),
        width(in[3]),
        out_channels(out[1]),
        out_height(out[2]),
        out_width(out[3]),
        kernel_height(weight[2]),
        kernel_width(weight[3]),
        groups(attributes.integer("groups")) {
    for (size_t axis = 0; axis < 2; ++axis) {
      stride[axis] = attributes.integers("stride")[axis];
      padding[axis] = attributes.integers("padding")[axis];
      dilation[axis] = attributes.integers("dilation")[axis];
    }
  }
  int64_t group_channels() const { return channels / groups; }
  int64_t group_out_channels() const { return out_channels / groups; }
  int64_t in_offset(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return ((n * channels + c) * height + h) * width + w;
  }
  int64_t out_offset(int64_t n, int64_t o, int64_t h, int64_t w) const {
    return ((n * out_channels + o) * out_height + h) * out_width + w;
  }
  /// `c` counts within the group.
  int64_t weight_offset(int64_t o, int64_t c, int64_t kh, int64_t kw) const {
    return ((o * group_channels() + c) * kernel_height + kh) * kernel_width + kw;
  }
  /// Along axis 0 (height) or 1 (width).
  TapReach reach(int axis, int64_t tap) const {
    return axis == 0 ? TapReach(out_height, height, stride[0], padding[0], dilation[0], tap)
                     : TapReach(out_width, width, stride[1], padding[1], dilation[1], tap);
  }
};

/// One row of outputs, all taps of one channel: in the order of the definition for each output.
void add_taps(const ConvGeometry& g, int64_t y, const float* image, const float* kernel, double* sums) {
  for (int64_t kh = 0; kh < g.kernel_height; ++kh) {
    const TapReach rows = g.reach(0, kh);
    if (!rows.serves(y)) continue;
    const float* line = image + rows.source(y) * g.width;
    for (int64_t kw = 0; kw < g.kernel_width; ++kw) {
      const TapReach columns = g.reach(1, kw);
      const double factor = kernel[kh * g.kernel_width + kw];
      for (int64_t x = columns.first; x < columns.end; ++x)
        sums[x] += static_cast<double>(line[columns.source(x)]) * factor;
    }
  }
}

/// `bias` may be null.
void forward(const ConvGeometry& g, const float* in, const float* weight, const float* bias, float* out) {
  std::vector<double> sums(static_cast<size_t>(g.out_width));
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.out_channels; ++o)
      for (int64_t y = 0; y < g.out_height; ++y) {
        const int64_t first_channel = o / g.group_out_channels() * g.group_channels();
        std::ranges::fill(sums, bias == nullptr ? 0 : static_cast<double>(bias[o]));
        for (int64_t c = 0; c < g.group_channels(); ++c)
          add_taps(g, y, in + g.in_offset(n, first_channel + c, 0, 0), weight + g.weight_offset(o, c, 0, 0),
                   sums.data());
        std::ranges::transform(sums, out + g.out_offset(n, o, y, 0),
                               [](double sum) { return static_cast<float>(sum); });
      }
}

/// What follows the sums of fused_conv2d, in place; `residual` may be null.
void finish(const float* residual, const std::string& activation, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float sum = out[i];
    if (residual != nullptr) sum += residual[i];
    if (activation != "none" && sum < 0) sum = 0;
    if (activation == "relu6" && sum > 6) sum = 6;
    out[i] = sum;
  }
}

/// What the taps of one output channel read: one row of the input's gradient, whose row is `h`.
void add_readers(const ConvGeometry& g, int64_t h, const float* out_gradient, const float* kernel, double* sums) {
  for (int64_t kh = 0; kh < g.kernel_height; ++kh) {
    const TapReach rows = g.reach(0, kh);
    const int64_t y = (h - rows.offset) / rows.stride;
    if (!rows.serves(y) || rows.source(y) != h) continue;
    for (int64_t kw = 0; kw < g.kernel_width; ++kw) {
      const TapReach columns = g.reach(1, kw);
      const double factor = kernel[kh * g.kernel_width + kw];
      for (int64_t x = columns.first; x < columns.end; ++x)
        sums[columns.source(x)] += static_cast<double>(out_gradient[y * g.out_width + x]) * factor;
    }
  }
}

void backward_data(const ConvGeometry& g, const float* out_gradient, const float* weight, float* in_gradient) {
  std::vector<double> sums(static_cast<size_t>(g.width));
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t c = 0; c < g.channels; ++c)
      for (int64_t h = 0; h < g.height; ++h) {
        const int64_t first_out = c / g.group_channels() * g.group_out_channels();
        std::ranges::fill(sums, 0);
        for (int64_t o = first_out; o < first_out + g.group_out_channels(); ++o)
          add_readers(g, h, out_gradient + g.out_offset(n, o, 0, 0),
                      weight + g.weight_offset(o, c % g.group_channels(), 0, 0), sums.data());
        std::ranges::transform(sums, in_gradient + g.in_offset(n, c, h, 0),
                               [](double sum) { return static_cast<float>(sum); });
      }
}

/// The gradient of one weight, the tap (kh, kw) from input channel `channel` to output channel `o`.
double gradient_of(const ConvGeometry& g, int64_t channel, int64_t o, const TapReach& rows, const TapReach& columns,
                   const float* in, const float* out_gradient) {
  double sum = 0;
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t y = rows.first; y < rows.end; ++y) {
      const float* line = in + g.in_offset(n, channel, rows.source(y), 0);
      const float* gradients = out_gradient + g.out_offset(n, o, y, 0);
      for (int64_t x = columns.first; x < columns.end; ++x)
        sum += static_cast<double>(line[columns.source(x)]) * static_cast<double>(gradients[x]);
    }
  return sum;
}

void backward_weights(const ConvGeometry& g, const float* in, const float* out_gradient, float* weight_gradient) {
  for (int64_t o = 0; o < g.out_channels; ++o)
    for (int64_t c = 0; c < g.group_channels(); ++c) {
      const int64_t channel = o / g.group_out_channels() * g.group_channels() + c;
      for (int64_t kh = 0; kh < g.kernel_height; ++kh)
        for (int64_t kw = 0; kw < g.kernel_width; ++kw)
          weight_gradient[g.weight_offset(o, c, kh, kw)] =
              static_cast<float>(gradient_of(g, channel, o, g.reach(0, kh), g.reach(1, kw), in, out_gradient));
    }
}

void backward_bias(const ConvGeometry& g, const float* out_gradient, float* bias_gradient) {
  for (int64_t o = 0; o < g.out_channels; ++o) {
    double sum = 0;
    for (int64_t n = 0; n < g.batch; ++n)
      for (int64_t at = 0; at < g.out_height * g.out_width; ++at)
        sum += static_cast<double>(out_gradient[g.out_offset(n, o, 0, 0) + at]);
    bias_gradient[o] = static_cast<float>(sum);
  }
}

}  // namespace

void add_conv(KernelTable& table) {
  add_plain(table, "conv2d", [](const NodeSignature& node) -> Body {
    const ConvGeometry g(node.inputs[0].shape, node.inputs[1].shape, node.outputs[0].shape, node.attributes);
    const bool has_bias = node.inputs.size() > 2;
    return [g, has_bias](const KernelArguments& call) {
      forward(g, input(call, 0), input(call, 1), has_bias ? input(call, 2) : nullptr, output(call, 0));
    };
  });
  add_plain(table, "fused_conv2d", [](const NodeSignature& node) -> Body {
    const ConvGeometry g(node.inputs[0].shape, node.inputs[1].shape, node.outputs[0].shape, node.attributes);
    const bool has_residual = node.inputs.size() > 3;
    return [g, has_residual, activation = node.attributes.text("activation"),
            count = node.outputs[0].elements()](const KernelArguments& call) {
      forward(g, input(call, 0), input(call, 1), input(call, 2), output(call, 0));
      finish(has_residual ? input(call, 3) : nullptr, activation, output(call, 0), count);
    };
  });
  add_plain(table, "conv2d_backward_data", [](const NodeSignature& node) -> Body {
    const ConvGeometry g(node.outputs[0].shape, node.inputs[1].shape, node.inputs[0].shape, node.attributes);
    return [g](const KernelArguments& call) { backward_data(g, input(call, 0), input(call, 1), output(call, 0)); };
  });
  add_plain(table, "conv2d_backward_weights", [](const NodeSignature& node) -> Body {
    const ConvGeometry g(node.inputs[0].shape, node.outputs[0].shape, node.inputs[1].shape, node.attributes);
    const bool has_bias = node.outputs.size() > 1;
    return [g, has_bias](const KernelArguments& call) {
      backward_weights(g, input(call, 0), input(call, 1), output(call, 0));
      if (has_bias) backward_bias(g, input(call, 1), output(call, 1));
    };
  });
}

}  // namespace weft::reference
