// Ops over rows of logits: softmax and its gradient, log_softmax, cross-entropy and its gradient.
#include <fmt/format.h>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

/// T: what logits and results consist of in memory.
template <typename T>
struct Loops {
  float (*largest)(const float* x, int64_t count);
  float (*exponentials)(const float* x, float shift, float* y, int64_t count);
  float (*exponential_sum)(const float* x, float shift, int64_t count);
  double (*sum)(const float* x, int64_t count);
  void (*softmax)(const T* x, float* powers, T* y, int64_t width, int64_t rows);
  void (*scale)(const float* x, float factor, float offset, T* y, int64_t count);
  void (*shift)(const float* x, float first, float second, T* y, int64_t count);
  void (*widen)(const T* from, float* to, int64_t count);
};

template <typename T>
struct TrainingLoops {
  void (*backward)(const T* dy, const T* y, T* dx, int64_t width, int64_t rows);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/reduce/softmax_loops.h"
#define WEFT_LOOPS_PER_TYPE
#define WEFT_TRAINING_LOOPS
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

/// Rows of `width` logits, shared out over threads.
template <typename T>
class RowKernel : public Kernel {
 public:
  RowKernel(const NodeSignature& node, const TensorType& logits, int threads, const Loops<T>& loops)
      : loops_(loops),
        threads_(threads),
        width_(logits.shape[logits.shape.rank() - 1]),
        rows_(logits.elements() / width_),
        name_("native:" + node.op->name) {}
  std::string name() const override { return name_; }

 protected:
  int parts() const { return static_cast<int>(std::clamp<int64_t>(rows_ * width_ / 8192, 1, threads_)); }
  /// Calls body(first row, rows, part) for each of the parts(), each on a thread of its own.
  template <typename Body>
  void for_each_part(Body&& body) const {
    parallel_run(threads_, parts(), [&](int part, int total) {
      const auto [begin, end] = split_range(rows_, part, total);
      body(begin, end - begin, part);
    });
  }
  template <typename Body>
  void for_each_row(Body&& body) const {
    for_each_part([&](int64_t first, int64_t rows, int) {
      for (int64_t row = first; row < first + rows; ++row) body(row);
    });
  }
  const Loops<T>& loops_;
  const int threads_;
  const int64_t width_, rows_;

 private:
  const std::string name_;
};

template <typename T>
class Softmax : public RowKernel<T> {
 public:
  Softmax(const NodeSignature& node, int threads, Isa isa)
      : RowKernel<T>(node, node.inputs[0], threads, loops_for<T>(isa)), logarithm_(node.op->name == "log_softmax") {}
  int64_t workspace_bytes() const override { return kIsWide ? 0 : this->parts() * row_bytes(); }

  void run(const KernelArguments& a) override {
    const auto& loops = this->loops_;
    const int64_t width = this->width_;
    this->for_each_part([&](int64_t first, int64_t rows, int part) {
      const T* x = a.input<T>(0) + first * width;
      T* y = a.output<T>(0) + first * width;
      // A row in f32, where it is stored in bf16: it is rounded only when all is done.
      auto* wide = reinterpret_cast<float*>(static_cast<char*>(a.workspace) + (kIsWide ? 0 : part * row_bytes()));
      if (!logarithm_) return loops.softmax(x, wide, y, width, rows);
      for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
        const float* logits = wide;
        if constexpr (kIsWide)
          logits = x;
        else
          loops.widen(x, wide, width);
        // logit - top first: both are large where the logits are, their difference is exact enough.
        const float top = loops.largest(logits, width);
        loops.shift(logits, top, std::log(loops.exponential_sum(logits, top, width)), y, width);
      }
    });
  }

 private:
  static constexpr bool kIsWide = std::is_same_v<T, float>;
  int64_t row_bytes() const { return align_up(this->width_ * 4); }
  const bool logarithm_;
};

template <typename T>
class SoftmaxBackward : public RowKernel<T> {
 public:
  SoftmaxBackward(const NodeSignature& node, int threads, Isa isa)
      : RowKernel<T>(node, node.inputs[0], threads, loops_for<T>(isa)), training_(training_loops_for<T>(isa)) {}
  void run(const KernelArguments& a) override {
    this->for_each_part([&](int64_t first, int64_t rows, int) {
      const int64_t at = first * this->width_;
      training_.backward(a.input<T>(0) + at, a.input<T>(1) + at, a.output<T>(0) + at, this->width_, rows);
    });
  }

 private:
  const TrainingLoops<T>& training_;
};

class CrossEntropy : public RowKernel<float> {
 public:
  CrossEntropy(const NodeSignature& node, int threads, const Loops<float>& loops)
      : RowKernel(node, node.inputs[0], threads, loops),
        smoothing_(node.attributes.real("label_smoothing")),
        ignored_(node.attributes.integer("ignore_index")) {}
  void run(const KernelArguments& a) override {
    for_each_row([&](int64_t row) {
      const float* x = static_cast<const float*>(a.inputs[0]) + row * width_;
      const int32_t label = static_cast<const int32_t*>(a.inputs[1])[row];
      float& loss = static_cast<float*>(a.outputs[0])[row];
      if (label == ignored_) {
        loss = 0;
        return;
      }
      if (label < 0 || label >= width_) {  // no such class: shows in the loss
        loss = std::numeric_limits<float>::quiet_NaN();
        return;
      }
      const float top = loops_.largest(x, width_);
      const double normaliser =
          static_cast<double>(top) + std::log(static_cast<double>(loops_.exponential_sum(x, top, width_)));
      double expected = (1 - smoothing_) * static_cast<double>(x[label]);
      if (smoothing_ != 0) expected += smoothing_ / static_cast<double>(width_) * loops_.sum(x, width_);
      loss = static_cast<float>(normaliser - expected);
    });
  }

 private:
  const double smoothing_;
  const int64_t ignored_;
};

class CrossEntropyBackward : public RowKernel<float> {
 public:
  CrossEntropyBackward(const NodeSignature& node, int threads, const Loops<float>& loops)
      : RowKernel(node, node.inputs[1], threads, loops),
        smoothing_(node.attributes.real("label_smoothing")),
        ignored_(node.attributes.integer("ignore_index")) {}
  void run(const KernelArguments& a) override {
    for_each_row([&](int64_t row) {
      const auto weight = static_cast<double>(static_cast<const float*>(a.inputs[0])[row]);
      const float* x = static_cast<const float*>(a.inputs[1]) + row * width_;
      const int32_t label = static_cast<const int32_t*>(a.inputs[2])[row];
      float* gradient = static_cast<float*>(a.outputs[0]) + row * width_;
      if (label == ignored_) {
        std::fill(gradient, gradient + width_, 0.0f);
        return;
      }
      if (label < 0 || label >= width_) {
        std::fill(gradient, gradient + width_, std::numeric_limits<float>::quiet_NaN());
        return;
      }
      const float top = loops_.largest(x, width_);
      const double sum = static_cast<double>(loops_.exponentials(x, top, gradient, width_));
      const double share = smoothing_ / static_cast<double>(width_);
      const double hit = static_cast<double>(gradient[label]) / sum - (1 - smoothing_) - share;
      loops_.scale(gradient, static_cast<float>(weight / sum), static_cast<float>(-weight * share), gradient, width_);
      gradient[label] = static_cast<float>(weight * hit);
    });
  }

 private:
  const double smoothing_;
  const int64_t ignored_;
};

/// Of a rank's part of the classes (ops/class_parts.h).
class ClassTerms : public RowKernel<float> {
 public:
  ClassTerms(const NodeSignature& node, int threads, const Loops<float>& loops)
      : RowKernel(node, node.inputs[0], threads, loops),
        smoothing_(node.attributes.real("label_smoothing")),
        ignored_(node.attributes.integer("ignore_index")),
        classes_(width_ * node.attributes.integer("parts")) {}
  void run(const KernelArguments& a) override {
    const int64_t first = *static_cast<const int64_t*>(a.inputs[3]) * width_;
    for_each_row([&](int64_t row) {
      const float* x = static_cast<const float*>(a.inputs[0]) + row * width_;
      const int32_t label = static_cast<const int32_t*>(a.inputs[1])[row];
      auto* terms = static_cast<float*>(a.outputs[0]);
      terms[row] = loops_.exponential_sum(x, static_cast<const float*>(a.inputs[2])[row], width_);
      double taken = 0;
      if (label != ignored_) {
        if (label < 0 || label >= classes_) taken = std::numeric_limits<double>::quiet_NaN();
        if (label >= first && label < first + width_) taken = (1 - smoothing_) * static_cast<double>(x[label - first]);
        if (smoothing_ != 0) taken += smoothing_ / static_cast<double>(classes_) * loops_.sum(x, width_);
      }
      terms[rows_ + row] = static_cast<float>(taken);
    });
  }

 private:
  const double smoothing_;
  const int64_t ignored_, classes_;  // of all ranks
};

class ClassTermsBackward : public RowKernel<float> {
 public:
  ClassTermsBackward(const NodeSignature& node, int threads, const Loops<float>& loops)
      : RowKernel(node, node.inputs[1], threads, loops),
        smoothing_(node.attributes.real("label_smoothing")),
        ignored_(node.attributes.integer("ignore_index")),
        classes_(width_ * node.attributes.integer("parts")) {}
  void run(const KernelArguments& a) override {
    const int64_t first = *static_cast<const int64_t*>(a.inputs[4]) * width_;
    for_each_row([&](int64_t row) {
      const float weight = static_cast<const float*>(a.inputs[0])[row];
      const float* x = static_cast<const float*>(a.inputs[1]) + row * width_;
      const int32_t label = static_cast<const int32_t*>(a.inputs[2])[row];
      float* gradient = static_cast<float*>(a.outputs[0]) + row * width_;
      if (label == ignored_ || label < 0 || label >= classes_) {
        std::fill(gradient, gradient + width_, label == ignored_ ? 0.0f : std::numeric_limits<float>::quiet_NaN());
        return;
      }
      loops_.exponentials(x, static_cast<const float*>(a.inputs[3])[row], gradient, width_);
      const double share = smoothing_ / static_cast<double>(classes_);
      const bool is_here = label >= first && label < first + width_;
      const double hit = is_here ? static_cast<double>(gradient[label - first]) - (1 - smoothing_) - share : 0;
      loops_.scale(gradient, weight, static_cast<float>(-static_cast<double>(weight) * share), gradient, width_);
      if (is_here) gradient[label - first] = static_cast<float>(static_cast<double>(weight) * hit);
    });
  }

 private:
  const double smoothing_;
  const int64_t ignored_, classes_;
};

template <template <typename> class RowsKernel>
void add(KernelTable& table, const char* op, Isa isa) {
  table.add(op, {"native",
                 [isa](const NodeSignature& node, const KernelOptions& options,
                       std::string& why_not) -> std::unique_ptr<Kernel> {
                   if (!plain_images(node, node.inputs.size(), 1, why_not)) return nullptr;
                   const Shape& shape = node.inputs[0].shape;
                   const int64_t axis = node.attributes.integer("axis");
                   if (axis != -1 && axis != shape.rank() - 1)
                     return declined(why_not, fmt::format("axis {} is not the last", axis));
                   if (shape.elements() == 0) return declined(why_not, "the input is empty");
                   return with_stored_type(node.inputs[0].dtype, [&](auto number) -> std::unique_ptr<Kernel> {
                     using T = decltype(number);
                     return std::make_unique<RowsKernel<T>>(node, options.threads, isa);
                   });
                 }});
}

}  // namespace

void add_softmax(KernelTable& table, Isa isa) {
  add<Softmax>(table, "softmax", isa);
  add<Softmax>(table, "log_softmax", isa);
}

void add_softmax_backward(KernelTable& table, Isa isa) { add<SoftmaxBackward>(table, "softmax_backward", isa); }

void add_losses(KernelTable& table, Isa isa) {
  table.add("cross_entropy", {"native",
                              [isa](const NodeSignature& node, const KernelOptions& options,
                                    std::string& why_not) -> std::unique_ptr<Kernel> {
                                if (!logits_and_labels(node, why_not)) return nullptr;
                                return std::make_unique<CrossEntropy>(node, options.threads, loops_for<float>(isa));
                              }});
  table.add(
      "cross_entropy_backward",
      {"native",
       [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) -> std::unique_ptr<Kernel> {
         if (!logits_and_labels(node, why_not)) return nullptr;
         return std::make_unique<CrossEntropyBackward>(node, options.threads, loops_for<float>(isa));
       }});
  const auto add_part = [&](const char* op, auto make) {
    table.add(op, {"native",
                   [isa, make](const NodeSignature& node, const KernelOptions& options,
                               std::string& why_not) -> std::unique_ptr<Kernel> {
                     for (const TensorType& type : node.inputs) {
                       if (!type.layout.is_plain()) return declined(why_not, "an operand is not row-major");
                       if (type.elements() == 0) return declined(why_not, "an operand is empty");
                     }
                     return make(node, options.threads, loops_for<float>(isa));
                   }});
  };
  add_part("class_terms", [](const NodeSignature& node, int threads, const Loops<float>& loops) {
    return std::make_unique<ClassTerms>(node, threads, loops);
  });
  add_part("class_terms_backward", [](const NodeSignature& node, int threads, const Loops<float>& loops) {
    return std::make_unique<ClassTermsBackward>(node, threads, loops);
  });
}

}  // namespace weft::native
