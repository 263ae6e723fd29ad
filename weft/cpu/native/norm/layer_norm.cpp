// layer_norm and layer_norm_backward: a row stays in the first-level cache while it is worked on.
#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

struct RowSums {
  float sum, product;
};

template <typename T>
struct Loops {
  void (*normalise)(const T* x, const float* scale, const float* shift, T* y, float* mean, float* inverse,
                    int64_t width, int64_t rows, double epsilon);
};

template <typename T>
struct TrainingLoops {
  void (*backward)(const T* dy, const T* x, const float* mean, const float* inverse, const float* scale,
                   float* scale_gradient, float* shift_gradient, T* dx, int64_t width, int64_t rows);
  void (*flush)(double* totals, float* part, int64_t width);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/norm/layer_norm_loops.h"
#define WEFT_LOOPS_PER_TYPE
#define WEFT_TRAINING_LOOPS
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 8192;       // elements that are worth a thread
constexpr int64_t kRowsInSingle = 64;  // rows added to a column sum in single precision before it goes to double

/// T: what the normalised tensor and its gradients consist of.
template <typename T>
class LayerNorm : public Kernel {
 public:
  LayerNorm(const NodeSignature& node, int64_t width, int threads, Isa isa)
      : loops_(loops_for<T>(isa)),
        threads_(threads),
        width_(width),
        rows_(node.inputs[0].elements() / width),
        epsilon_(node.attributes.real("epsilon")) {}
  std::string name() const override { return "native:layer_norm"; }
  void run(const KernelArguments& a) override {
    parallel_for(threads_, rows_, std::max<int64_t>(1, kGrain / width_), [&](int64_t begin, int64_t end) {
      loops_.normalise(a.input<T>(0) + begin * width_, a.input(1), a.input(2), a.output<T>(0) + begin * width_,
                       a.output(1) + begin, a.output(2) + begin, width_, end - begin, epsilon_);
    });
  }

 private:
  const Loops<T>& loops_;
  const int threads_;
  const int64_t width_, rows_;
  const double epsilon_;
};

template <typename T>
class LayerNormBackward : public Kernel {
 public:
  LayerNormBackward(const NodeSignature& node, int64_t width, int threads, Isa isa)
      : loops_(training_loops_for<T>(isa)),
        width_(width),
        rows_(node.inputs[0].elements() / width),
        threads_(threads),
        parts_(static_cast<int>(std::clamp<int64_t>(node.inputs[0].elements() / kGrain, 1, threads))) {}
  std::string name() const override { return "native:layer_norm_backward"; }
  int64_t workspace_bytes() const override { return parts_ * part_bytes(); }

  void run(const KernelArguments& a) override {
    parallel_run(threads_, parts_, [&](int thread, int threads) {
      const auto [first, last] = split_range(parts_, thread, threads);
      for (int64_t part = first; part < last; ++part) run_part(a, static_cast<int>(part));
    });
    for (int64_t d = 0; d < width_; ++d) {
      double scale = 0, shift = 0;
      for (int part = 0; part < parts_; ++part) {
        scale += totals(a, part)[d];
        shift += totals(a, part)[width_ + d];
      }
      a.output(1)[d] = static_cast<float>(scale);
      a.output(2)[d] = static_cast<float>(shift);
    }
  }

 private:
  // Per part: double totals of the gradients of scale and shift, then the same in float for the latest rows.
  int64_t part_bytes() const { return align_up(2 * width_ * 8) + align_up(2 * width_ * 4); }
  double* totals(const KernelArguments& a, int part) const {
    return reinterpret_cast<double*>(static_cast<char*>(a.workspace) + part * part_bytes());
  }

  void run_part(const KernelArguments& a, int part) const {
    double* total = totals(a, part);
    auto* latest = reinterpret_cast<float*>(reinterpret_cast<char*>(total) + align_up(2 * width_ * 8));
    std::fill(total, total + 2 * width_, 0.0);
    std::fill(latest, latest + 2 * width_, 0.0f);
    const auto [begin, end] = split_range(rows_, part, parts_);
    for (int64_t row = begin; row < end; row += kRowsInSingle) {
      const int64_t at = row * width_;
      loops_.backward(a.input<T>(0) + at, a.input<T>(1) + at, a.input(3) + row, a.input(4) + row, a.input(2), latest,
                      latest + width_, a.output<T>(0) + at, width_, std::min(kRowsInSingle, end - row));
      loops_.flush(total, latest, 2 * width_);
    }
  }

  const TrainingLoops<T>& loops_;
  const int64_t width_, rows_;
  const int threads_, parts_;
};

/// The first `images` inputs and the first result are of T.
template <template <typename> class NormKernel>
void add(KernelTable& table, const char* op, size_t images, Isa isa) {
  table.add(op, {"native",
                 [images, isa](const NodeSignature& node, const KernelOptions& options,
                               std::string& why_not) -> std::unique_ptr<Kernel> {
                   if (!plain_images(node, images, 1, why_not)) return nullptr;
                   const Shape& shape = node.inputs[0].shape;
                   if (shape.elements() == 0) return declined(why_not, "the input is empty");
                   return with_stored_type(node.inputs[0].dtype, [&](auto number) -> std::unique_ptr<Kernel> {
                     using T = decltype(number);
                     return std::make_unique<NormKernel<T>>(node, shape[shape.rank() - 1], options.threads, isa);
                   });
                 }});
}

}  // namespace

void add_layer_norm(KernelTable& table, Isa isa) { add<LayerNorm>(table, "layer_norm", 1, isa); }

void add_layer_norm_backward(KernelTable& table, Isa isa) {
  add<LayerNormBackward>(table, "layer_norm_backward", 2, isa);
}

}  // namespace weft::native
