// batch_norm and batch_norm_inference, with activation and residual in the same pass: statistics, then normalise.
#include "weft/cpu/native/norm/batch_norm.h"

#include <fmt/format.h>

#include <utility>

#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

template <typename T>
struct NormaliseChunk {
  const T *x, *residual;  // residual: only read where the node has one
  T* y;
  int64_t rows, stride, width;
  const float *mean, *factor, *shift;  // y = (x - mean) * factor + shift
};

template <typename T>
struct TrainingLoops {
  void (*moments)(const T* x, int64_t rows, int64_t stride, int64_t width, double before, double* mean,
                  double* squares);
};

template <typename T>
struct Loops {
  void (*normalise[2][3])(const NormaliseChunk<T>&);  // [has residual][Activation]
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/norm/batch_norm_loops.h"
#define WEFT_LOOPS_PER_TYPE
#define WEFT_TRAINING_LOOPS
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

/// What is known before, and what is computed: statistics, normalised numbers, or both.
enum class Part { training, inference, statistics };

/// T: what images consist of.
template <typename T>
class BatchNorm : public Kernel {
 public:
  /// `training` is null where statistics are known.
  BatchNorm(const ChannelView& view, const NodeSignature& node, int threads, Part part, Isa isa,
            const TrainingLoops<T>* training)
      : view_(view),
        split_(split_channels(view, threads)),
        loops_(loops_for<T>(isa)),
        training_(training),
        measures_(part != Part::inference),
        normalises_(part != Part::statistics),
        residual_(node.inputs.size() == (measures_ ? 4u : 6u)),
        activation_(*activation_of(node)),
        epsilon_(normalises_ ? node.attributes.real("epsilon") : 0),
        name_("native:" + node.op->name) {}

  std::string name() const override { return name_; }

  int64_t workspace_bytes() const override {
    return 3 * align_up(view_.padded_channels() * 4) + parts() * 2 * partial_stride() * 8;
  }

  void run(const KernelArguments& arguments) override {
    Call call(*this, arguments);
    if (split_.slices == 1) {
      parallel_run(split_.pool, split_.threads, [&](int thread, int threads) {
        const auto [begin, end] = split_range(view_.groups, thread, threads);
        for (int64_t group = begin; group < end; ++group) {
          if (measures_) measure(call, group, thread, 0, view_.rows_per_group());
          prepare(call, group, thread, 1);
          if (normalises_) normalise(call, group, 0, view_.rows_per_group());
        }
      });
      return;
    }
    for (int64_t group = 0; group < view_.groups; ++group) {
      if (measures_)
        for_each_slice([&](int slice, int64_t begin, int64_t end) { measure(call, group, slice, begin, end); });
      prepare(call, group, 0, split_.slices);
      if (normalises_) for_each_slice([&](int, int64_t begin, int64_t end) { normalise(call, group, begin, end); });
    }
  }

 private:
  struct Call {
    Call(const BatchNorm& kernel, const KernelArguments& a) {
      x = a.input<T>(0);
      if (kernel.normalises_) {
        scale = a.input(1);
        shift = a.input(2);
        if (kernel.residual_) residual = static_cast<const T*>(a.inputs.back());
        y = a.output<T>(0);
      }
      if (kernel.measures_) {
        mean = a.output(kernel.normalises_ ? 1 : 0);
        variance = a.output(kernel.normalises_ ? 2 : 1);
      } else {
        given_mean = a.input(3);
        given_variance = a.input(4);
      }
      auto* space = static_cast<char*>(a.workspace);
      const auto next = [&space, bytes = align_up(kernel.view_.padded_channels() * 4)] {
        return reinterpret_cast<float*>(std::exchange(space, space + bytes));
      };
      padded_mean = next();
      padded_factor = next();
      padded_shift = next();
      partials = reinterpret_cast<double*>(space);
    }
    const T *x, *residual = nullptr;
    T* y = nullptr;
    const float *scale = nullptr, *shift = nullptr, *given_mean = nullptr, *given_variance = nullptr;
    float *mean = nullptr, *variance = nullptr;
    float *padded_mean, *padded_factor, *padded_shift;  // zero in the padding, so that padded outputs are zero
    double* partials;                                   // per part: means, then squares
  };

  int64_t parts() const { return std::max(split_.threads, split_.slices); }
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

  void measure(const Call& call, int64_t group, int part, int64_t begin, int64_t end) const {
    double* mean = call.partials + 2 * part * partial_stride();
    double* squares = mean + partial_stride();
    std::fill(mean, mean + 2 * partial_stride(), 0.0);
    double before = 0;
    for_each_chunk(view_, group, begin, end, split_.chunk_rows, [&](int64_t offset, int64_t rows) {
      training_->moments(call.x + offset, rows, view_.row_stride, view_.width, before, mean, squares);
      before += static_cast<double>(rows);
    });
  }

  /// Joins the slices' statistics and writes the group's mean, variance and factors.
  void prepare(const Call& call, int64_t group, int first_part, int slices) const {
    const int64_t rows = view_.rows_per_group();
    for (int64_t lane = 0; lane < view_.width; ++lane) {
      const int64_t channel = group * view_.width + lane;
      if (channel >= view_.channels) {
        call.padded_mean[channel] = call.padded_factor[channel] = call.padded_shift[channel] = 0;
        continue;
      }
      float mean_f, variance_f;
      if (measures_) {
        double mean = 0, squares = 0, before = 0;
        for (int slice = 0; slice < slices; ++slice) {
          const double* partial = call.partials + 2 * (first_part + slice) * partial_stride() + lane;
          const auto [begin, end] = split_range(rows, slice, slices);
          if (begin == end) continue;
          baseline::join_moments(static_cast<double>(end - begin), partial[0], partial[partial_stride()], before, mean,
                                 squares);
          before += static_cast<double>(end - begin);
        }
        call.mean[channel] = mean_f = static_cast<float>(mean);
        call.variance[channel] = variance_f = static_cast<float>(squares / static_cast<double>(rows));
      } else {
        mean_f = call.given_mean[channel];
        variance_f = call.given_variance[channel];
      }
      if (!normalises_) continue;
      call.padded_mean[channel] = mean_f;
      call.padded_factor[channel] = static_cast<float>(static_cast<double>(call.scale[channel]) /
                                                       std::sqrt(static_cast<double>(variance_f) + epsilon_));
      call.padded_shift[channel] = call.shift[channel];
    }
  }

  void normalise(const Call& call, int64_t group, int64_t begin, int64_t end) const {
    const int64_t channel = group * view_.width;
    const auto loop = loops_.normalise[residual_][static_cast<int>(activation_)];
    for_each_chunk_reversed(view_, group, begin, end, split_.apply_rows, [&](int64_t offset, int64_t rows) {
      loop({call.x + offset, residual_ ? call.residual + offset : call.x, call.y + offset, rows, view_.row_stride,
            view_.width, call.padded_mean + channel, call.padded_factor + channel, call.padded_shift + channel});
    });
  }

  const ChannelView view_;
  const ChannelSplit split_;
  const Loops<T>& loops_;
  const TrainingLoops<T>* const training_;
  const bool measures_, normalises_, residual_;
  const Activation activation_;
  const double epsilon_;
  const std::string name_;
};

}  // namespace

std::optional<Activation> activation_of(const NodeSignature& node) {
  if (!node.attributes.has("activation")) return Activation::none;
  const std::string name = node.attributes.text("activation");
  if (name == "none") return Activation::none;
  if (name == "relu") return Activation::relu;
  if (name == "relu6") return Activation::relu6;
  return std::nullopt;
}

std::optional<ChannelView> batch_norm_view(const NodeSignature& node, std::string& why_not) {
  const TensorType& input = node.inputs[0];
  for (const auto* types : {&node.inputs, &node.outputs})
    for (const auto& type : *types) {
      const bool is_image = type.shape.rank() != 1;
      if (type.dtype != (is_image ? input.dtype : DType::f32) || !is_stored_type(type.dtype)) {
        why_not = fmt::format("operand {} with input {}: images are f32 or bf16, statistics and parameters f32",
                              to_string(type), to_string(input));
        return std::nullopt;
      }
      if (is_image ? type.layout != input.layout : !type.layout.is_plain()) {
        why_not = fmt::format("operand {} has another layout than input {}", to_string(type), to_string(input));
        return std::nullopt;
      }
    }
  if (!activation_of(node)) {
    why_not = fmt::format("activation '{}'", node.attributes.text("activation"));
    return std::nullopt;
  }
  auto view = channel_view(input);
  if (!view) why_not = fmt::format("layout of {}", to_string(input));
  if (view && view->elements() == 0) {
    why_not = "the input is empty";
    return std::nullopt;
  }
  return view;
}

namespace {

template <Part part>
void add(KernelTable& table, const char* op, Isa isa) {
  const auto make = [isa](const NodeSignature& node, const KernelOptions& options,
                          std::string& why_not) -> std::unique_ptr<Kernel> {
    const auto view = batch_norm_view(node, why_not);
    if (!view) return nullptr;
    return with_stored_type(node.inputs[0].dtype, [&](auto number) -> std::unique_ptr<Kernel> {
      using T = decltype(number);
      const TrainingLoops<T>* training = nullptr;
      if constexpr (part != Part::inference) training = &training_loops_for<T>(isa);
      return std::make_unique<BatchNorm<T>>(*view, node, options.threads, part, isa, training);
    });
  };
  table.add(op, {"native", make});
}

}  // namespace

void add_batch_norm(KernelTable& table, Isa isa) {
  add<Part::training>(table, "batch_norm", isa);
  add<Part::statistics>(table, "batch_statistics", isa);
}

void add_batch_norm_inference(KernelTable& table, Isa isa) { add<Part::inference>(table, "batch_norm_inference", isa); }

}  // namespace weft::native
