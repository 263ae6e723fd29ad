// Batch normalisation (Ioffe & Szegedy 2015): training, its gradient, inference, and the running statistics.
#include <cmath>
#include <limits>

#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

/// (N,C,rest): everything but axis 1 is normalised over.
struct ChannelGrid {
  int64_t batch, channels, inner;
  explicit ChannelGrid(const Shape& shape) : batch(shape[0]), channels(shape[1]), inner(1) {
    for (int axis = 2; axis < shape.rank(); ++axis) inner *= shape[axis];
  }
  double count() const { return static_cast<double>(batch * inner); }
  /// Calls visit(offset) for every element of one channel.
  template <typename Visit>
  void for_each(int64_t channel, Visit&& visit) const {
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t i = 0; i < inner; ++i) visit((n * channels + channel) * inner + i);
  }
};

/// The numbers between which the node's activation changes nothing.
struct Bounds {
  explicit Bounds(const NodeSignature& node) {
    const std::string activation = node.attributes.text("activation");
    if (activation != "none") low = 0;
    if (activation == "relu6") high = 6;
  }
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  double activate(double value) const { return value < low ? low : value > high ? high : value; }
  bool stop(double value) const { return std::isfinite(low) && (value <= low || value >= high); }
};

Body prepare_batch_norm(const NodeSignature& node) {
  const ChannelGrid grid(node.inputs[0].shape);
  const double epsilon = node.attributes.real("epsilon");
  const Bounds bounds(node);
  const bool has_residual = node.inputs.size() > 3;
  return [=](const KernelArguments& call) {
    const float *x = input(call, 0), *scale = input(call, 1), *shift = input(call, 2);
    const float* residual = has_residual ? input(call, 3) : nullptr;
    float *y = output(call, 0), *means = output(call, 1), *variances = output(call, 2);
    for (int64_t c = 0; c < grid.channels; ++c) {
      double sum = 0, squares = 0;
      grid.for_each(c, [&](int64_t i) { sum += static_cast<double>(x[i]); });
      const double mean = sum / grid.count();
      grid.for_each(c, [&](int64_t i) { squares += std::pow(static_cast<double>(x[i]) - mean, 2); });
      const double variance = squares / grid.count();
      const double factor = static_cast<double>(scale[c]) / std::sqrt(variance + epsilon);
      const double offset = static_cast<double>(shift[c]);
      grid.for_each(c, [&](int64_t i) {
        const double value = (static_cast<double>(x[i]) - mean) * factor + offset;
        y[i] = static_cast<float>(bounds.activate(value + (residual ? static_cast<double>(residual[i]) : 0)));
      });
      means[c] = static_cast<float>(mean);
      variances[c] = static_cast<float>(variance);
    }
  };
}

Body prepare_statistics(const NodeSignature& node) {
  const ChannelGrid grid(node.inputs[0].shape);
  return [=](const KernelArguments& call) {
    const float* x = input(call, 0);
    for (int64_t c = 0; c < grid.channels; ++c) {
      double sum = 0, squares = 0;
      grid.for_each(c, [&](int64_t i) { sum += static_cast<double>(x[i]); });
      const double mean = sum / grid.count();
      grid.for_each(c, [&](int64_t i) { squares += std::pow(static_cast<double>(x[i]) - mean, 2); });
      output(call, 0)[c] = static_cast<float>(mean);
      output(call, 1)[c] = static_cast<float>(squares / grid.count());
    }
  };
}

Body prepare_batch_norm_backward(const NodeSignature& node) {
  const ChannelGrid grid(node.inputs[0].shape);
  const double epsilon = node.attributes.real("epsilon");
  const Bounds bounds(node);
  const bool has_output = node.inputs.size() > 6;
  const bool wants_residual = node.attributes.boolean("residual_gradient");
  return [=](const KernelArguments& call) {
    const float *dy = input(call, 0), *x = input(call, 1), *scale = input(call, 2), *shift = input(call, 3);
    const float *means = input(call, 4), *variances = input(call, 5);
    const float* y = has_output ? input(call, 6) : nullptr;
    float *dx = output(call, 0), *dscale = output(call, 1), *dshift = output(call, 2);
    float* dresidual = wants_residual ? output(call, 3) : nullptr;
    for (int64_t c = 0; c < grid.channels; ++c) {
      const double mean = static_cast<double>(means[c]), gain = static_cast<double>(scale[c]);
      const double inverse = 1 / std::sqrt(static_cast<double>(variances[c]) + epsilon);
      const auto normalised = [&](int64_t i) { return (static_cast<double>(x[i]) - mean) * inverse; };
      const auto gradient = [&](int64_t i) {  // after the activation's mask
        const double activated = y ? static_cast<double>(y[i]) : normalised(i) * gain + static_cast<double>(shift[c]);
        return bounds.stop(activated) ? 0.0 : static_cast<double>(dy[i]);
      };
      double sum = 0, product = 0;
      grid.for_each(c, [&](int64_t i) {
        sum += gradient(i);
        product += gradient(i) * normalised(i);
      });
      grid.for_each(c, [&](int64_t i) {
        const double masked = gradient(i);  // before dx, which may overwrite dy
        dx[i] =
            static_cast<float>(gain * inverse * (masked - sum / grid.count() - normalised(i) * product / grid.count()));
        if (dresidual) dresidual[i] = static_cast<float>(masked);
      });
      dscale[c] = static_cast<float>(product);
      dshift[c] = static_cast<float>(sum);
    }
  };
}

Body prepare_inference(const NodeSignature& node) {
  const ChannelGrid grid(node.inputs[0].shape);
  const double epsilon = node.attributes.real("epsilon");
  const Bounds bounds(node);
  const bool has_residual = node.inputs.size() > 5;
  return [=](const KernelArguments& call) {
    const float *x = input(call, 0), *scale = input(call, 1), *shift = input(call, 2);
    const float *means = input(call, 3), *variances = input(call, 4);
    const float* residual = has_residual ? input(call, 5) : nullptr;
    float* y = output(call, 0);
    for (int64_t c = 0; c < grid.channels; ++c) {
      const double factor = static_cast<double>(scale[c]) / std::sqrt(static_cast<double>(variances[c]) + epsilon);
      grid.for_each(c, [&](int64_t i) {
        const double value = (static_cast<double>(x[i]) - static_cast<double>(means[c])) * factor +
                             static_cast<double>(shift[c]) + (residual ? static_cast<double>(residual[i]) : 0);
        y[i] = static_cast<float>(bounds.activate(value));
      });
    }
  };
}

Body prepare_running_average(const NodeSignature& node) {
  const int64_t channels = node.inputs[0].elements();
  const double momentum = node.attributes.real("momentum"), factor = node.attributes.real("sample_factor");
  return [=](const KernelArguments& call) {
    const float *running = input(call, 0), *sample = input(call, 1);
    for (int64_t c = 0; c < channels; ++c) {
      const double average =
          (1 - momentum) * static_cast<double>(running[c]) + momentum * factor * static_cast<double>(sample[c]);
      output(call, 0)[c] = std::isfinite(sample[c]) ? static_cast<float>(average) : running[c];
    }
  };
}

}  // namespace

void add_batch_norm(KernelTable& table) {
  add_plain(table, "batch_norm", prepare_batch_norm);
  add_plain(table, "batch_statistics", prepare_statistics);
  add_plain(table, "batch_norm_backward", prepare_batch_norm_backward);
  add_plain(table, "batch_norm_inference", prepare_inference);
  add_plain(table, "running_average", prepare_running_average);
}

}  // namespace weft::reference
