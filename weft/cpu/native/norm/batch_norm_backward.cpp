// batch_norm_backward: one pass for the sums (and the residual's gradient), one for the input's gradient.
#include <utility>

#include "weft/cpu/native/norm/batch_norm.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

/// Where the gradient passes: what the activation was, and what of it is computed again or read.
enum class Mask { none, relu_of_input, relu_of_output, relu6_of_input, relu6_of_output };
constexpr bool reads_output(Mask mask) { return mask == Mask::relu_of_output || mask == Mask::relu6_of_output; }

Mask mask_of(const NodeSignature& node) {
  const bool has_output = node.inputs.size() == 7;
  switch (*activation_of(node)) {
    case Activation::none:
      return Mask::none;
    case Activation::relu:
      return has_output ? Mask::relu_of_output : Mask::relu_of_input;
    case Activation::relu6:
      return has_output ? Mask::relu6_of_output : Mask::relu6_of_input;
  }
  return Mask::none;
}

template <typename T>
struct BackwardChunk {
  const T *gradient, *x, *output;  // output: only read where reads_output(mask)
  T *masked, *input_gradient;
  int64_t rows, stride, width;
  const float *mean, *factor, *shift, *bias, *slope;
  double *sums, *products;
};

template <typename T>
struct MaskedLoops {
  void (*sum[2])(const BackwardChunk<T>&);  // [stores the residual's gradient]
  void (*apply)(const BackwardChunk<T>&);
};
template <typename T>
struct Loops {
  MaskedLoops<T> of[5];  // [Mask]
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/norm/batch_norm_backward_loops.h"
#define WEFT_LOOPS_PER_TYPE
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

/// T: what images and their gradients consist of.
template <typename T>
class BatchNormBackward : public Kernel {
 public:
  BatchNormBackward(const ChannelView& view, const NodeSignature& node, int threads, Isa isa)
      : view_(view),
        split_(split_channels(view, threads)),
        loops_(loops_for<T>(isa)),
        mask_(mask_of(node)),
        residual_(node.attributes.boolean("residual_gradient")),
        epsilon_(node.attributes.real("epsilon")) {}

  std::string name() const override { return "native:batch_norm_backward"; }

  int64_t workspace_bytes() const override {
    return kParameters * align_up(view_.padded_channels() * 4) +
           std::max(split_.threads, split_.slices) * 2 * partial_stride() * 8;
  }

  void run(const KernelArguments& arguments) override {
    const Call call(*this, arguments);
    if (split_.slices == 1) {
      parallel_run(split_.pool, split_.threads, [&](int thread, int threads) {
        const auto [begin, end] = split_range(view_.groups, thread, threads);
        for (int64_t group = begin; group < end; ++group) {
          prepare(call, group);
          sum(call, group, thread, 0, view_.rows_per_group());
          finish(call, group, thread, 1);
          apply(call, group, 0, view_.rows_per_group());
        }
      });
      return;
    }
    for (int64_t group = 0; group < view_.groups; ++group) {
      prepare(call, group);
      for_each_slice([&](int slice, int64_t begin, int64_t end) { sum(call, group, slice, begin, end); });
      finish(call, group, 0, split_.slices);
      for_each_slice([&](int, int64_t begin, int64_t end) { apply(call, group, begin, end); });
    }
  }

 private:
  static constexpr int kParameters = 5;  // padded mean, factor, shift, bias, slope

  struct Call {
    Call(const BatchNormBackward& kernel, const KernelArguments& a) {
      gradient = a.input<T>(0);
      x = a.input<T>(1);
      scale = a.input(2);
      shift = a.input(3);
      mean = a.input(4);
      variance = a.input(5);
      output = reads_output(kernel.mask_) ? a.input<T>(6) : x;
      input_gradient = a.output<T>(0);
      scale_gradient = a.output(1);
      shift_gradient = a.output(2);
      residual_gradient = kernel.residual_ ? a.output<T>(3) : nullptr;
      auto* space = static_cast<char*>(a.workspace);
      const auto next = [&space, bytes = align_up(kernel.view_.padded_channels() * 4)] {
        return reinterpret_cast<float*>(std::exchange(space, space + bytes));
      };
      padded_mean = next();
      padded_factor = next();
      padded_shift = next();
      padded_bias = next();
      padded_slope = next();
      partials = reinterpret_cast<double*>(space);
    }
    const T *gradient, *x, *output;
    T *input_gradient, *residual_gradient;
    const float *scale, *shift, *mean, *variance;
    float *scale_gradient, *shift_gradient;
    float *padded_mean, *padded_factor, *padded_shift, *padded_bias, *padded_slope;
    double* partials;  // per part: sums, then products
  };

  int64_t partial_stride() const { return align_up(view_.width * 8) / 8; }

  template <typename Body>
  void for_each_slice(Body&& body) const {
    parallel_run(split_.pool, split_.threads, [&](int thread, int threads) {
      const auto [first, last] = split_range(split_.slices, thread, threads);
      for (int64_t slice = first; slice < last; ++slice) {
        const auto [begin, end] = split_range(view_.rows_per_group(), static_cast<int>(slice), split_.slices);
        body(static_cast<int>(slice), begin, end);
      }
    });
  }

  BackwardChunk<T> chunk(const Call& call, int64_t group, int64_t offset, int64_t rows) const {
    const int64_t channel = group * view_.width;
    BackwardChunk<T> c{};
    c.gradient = call.gradient + offset;
    c.x = call.x + offset;
    c.output = call.output + offset;
    c.input_gradient = call.input_gradient + offset;
    c.rows = rows;
    c.stride = view_.row_stride;
    c.width = view_.width;
    c.mean = call.padded_mean + channel;
    c.factor = call.padded_factor + channel;
    c.shift = call.padded_shift + channel;
    c.bias = call.padded_bias + channel;
    c.slope = call.padded_slope + channel;
    return c;
  }

  double inverse_deviation(const Call& call, int64_t channel) const {
    return 1.0 / std::sqrt(static_cast<double>(call.variance[channel]) + epsilon_);
  }

  void prepare(const Call& call, int64_t group) const {
    for (int64_t channel = group * view_.width; channel < (group + 1) * view_.width; ++channel) {
      const bool real = channel < view_.channels;
      call.padded_mean[channel] = real ? call.mean[channel] : 0;
      call.padded_factor[channel] =
          real ? static_cast<float>(static_cast<double>(call.scale[channel]) * inverse_deviation(call, channel)) : 0;
      call.padded_shift[channel] = real ? call.shift[channel] : 0;
    }
  }

  void sum(const Call& call, int64_t group, int part, int64_t begin, int64_t end) const {
    double* sums = call.partials + 2 * part * partial_stride();
    std::fill(sums, sums + 2 * partial_stride(), 0.0);
    const auto loop = loops_.of[static_cast<int>(mask_)].sum[residual_];
    for_each_chunk(view_, group, begin, end, split_.chunk_rows, [&](int64_t offset, int64_t rows) {
      BackwardChunk<T> c = chunk(call, group, offset, rows);
      c.masked = residual_ ? call.residual_gradient + offset : nullptr;
      c.sums = sums;
      c.products = sums + partial_stride();
      loop(c);
    });
  }

  /// Adds up the slices and writes the gradients of scale and shift.
  void finish(const Call& call, int64_t group, int first_part, int slices) const {
    const auto count = static_cast<double>(view_.rows_per_group());
    for (int64_t lane = 0; lane < view_.width; ++lane) {
      const int64_t channel = group * view_.width + lane;
      if (channel >= view_.channels) {
        call.padded_bias[channel] = call.padded_slope[channel] = 0;
        continue;
      }
      double total = 0, product = 0;
      for (int slice = 0; slice < slices; ++slice) {
        const double* partial = call.partials + 2 * (first_part + slice) * partial_stride() + lane;
        total += partial[0];
        product += partial[partial_stride()];
      }
      const double inverse = inverse_deviation(call, channel);
      call.shift_gradient[channel] = static_cast<float>(total);
      call.scale_gradient[channel] = static_cast<float>(product * inverse);
      call.padded_bias[channel] = static_cast<float>(total / count);
      call.padded_slope[channel] = static_cast<float>(product * inverse * inverse / count);
    }
  }

  void apply(const Call& call, int64_t group, int64_t begin, int64_t end) const {
    // The residual's gradient is the masked gradient: nothing to mask again, and one tensor less to read.
    const auto loop = loops_.of[static_cast<int>(residual_ ? Mask::none : mask_)].apply;
    for_each_chunk_reversed(view_, group, begin, end, split_.apply_rows, [&](int64_t offset, int64_t rows) {
      BackwardChunk<T> c = chunk(call, group, offset, rows);
      if (residual_) c.gradient = call.residual_gradient + offset;
      loop(c);
    });
  }

  const ChannelView view_;
  const ChannelSplit split_;
  const Loops<T>& loops_;
  const Mask mask_;
  const bool residual_;
  const double epsilon_;
};

}  // namespace

void add_batch_norm_backward(KernelTable& table, Isa isa) {
  const auto make = [isa](const NodeSignature& node, const KernelOptions& options,
                          std::string& why_not) -> std::unique_ptr<Kernel> {
    const auto view = batch_norm_view(node, why_not);
    if (!view) return nullptr;
    return with_stored_type(node.inputs[0].dtype, [&](auto number) -> std::unique_ptr<Kernel> {
      return std::make_unique<BatchNormBackward<decltype(number)>>(*view, node, options.threads, isa);
    });
  };
  table.add("batch_norm_backward", {"native", make});
}

}  // namespace weft::native
