// Ops over rows of logits: softmax, log_softmax, cross-entropy with its gradient.
#include <fmt/format.h>

#include "weft/base/parallel.h"
#include "weft/runtime/native/native.h"

namespace weft::native {

namespace {

struct Loops {
  float (*largest)(const float* x, int64_t count);
  float (*exponentials)(const float* x, float shift, float* y, int64_t count);
  float (*exponential_sum)(const float* x, float shift, int64_t count);
  double (*sum)(const float* x, int64_t count);
  void (*scale)(const float* x, float factor, float offset, float* y, int64_t count);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/runtime/native/softmax_loops.h"
#include "weft/runtime/native/multiversion.h"

namespace weft::native {

namespace {

/// Rows of `width` logits, shared out over threads.
class RowKernel : public Kernel {
 public:
  RowKernel(const NodeSignature& node, const TensorType& logits, int threads, const Loops& loops)
      : loops_(loops),
        threads_(threads),
        width_(logits.shape[logits.shape.rank() - 1]),
        rows_(logits.elements() / width_),
        name_("native:" + node.op->name) {}
  std::string name() const override { return name_; }

 protected:
  template <typename Body>
  void for_each_row(Body&& body) const {
    parallel_for(threads_, rows_, std::max<int64_t>(1, 8192 / width_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(row);
    });
  }
  const Loops& loops_;
  const int threads_;
  const int64_t width_, rows_;

 private:
  const std::string name_;
};

class Softmax : public RowKernel {
 public:
  Softmax(const NodeSignature& node, int threads, const Loops& loops)
      : RowKernel(node, node.inputs[0], threads, loops), logarithm_(node.op->name == "log_softmax") {}
  void run(const KernelArguments& a) override {
    for_each_row([&](int64_t row) {
      const float* x = static_cast<const float*>(a.inputs[0]) + row * width_;
      float* y = static_cast<float*>(a.outputs[0]) + row * width_;
      const float top = loops_.largest(x, width_);
      if (logarithm_) {
        const float sum = loops_.exponential_sum(x, top, width_);
        // x - top first: both are large where the logits are, their difference is exact enough.
        loops_.scale(x, 1.0f, -top, y, width_);
        loops_.scale(y, 1.0f, -std::log(sum), y, width_);
      } else {
        const float sum = loops_.exponentials(x, top, y, width_);
        loops_.scale(y, 1.0f / sum, 0.0f, y, width_);
      }
    });
  }

 private:
  const bool logarithm_;
};

class CrossEntropy : public RowKernel {
 public:
  CrossEntropy(const NodeSignature& node, int threads, const Loops& loops)
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

class CrossEntropyBackward : public RowKernel {
 public:
  CrossEntropyBackward(const NodeSignature& node, int threads, const Loops& loops)
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

}  // namespace

void add_softmax(KernelTable& table, Isa isa) {
  const auto softmax = [isa](const NodeSignature& node, const KernelOptions& options,
                             std::string& why_not) -> std::unique_ptr<Kernel> {
    if (!all_plain_f32(node, why_not)) return nullptr;
    const Shape& shape = node.inputs[0].shape;
    const int64_t axis = node.attributes.integer("axis");
    if (axis != -1 && axis != shape.rank() - 1) return declined(why_not, fmt::format("axis {} is not the last", axis));
    if (shape.elements() == 0) return declined(why_not, "the input is empty");
    return std::make_unique<Softmax>(node, options.threads, loops_for(isa));
  };
  table.add("softmax", {"native", softmax});
  table.add("log_softmax", {"native", softmax});
}

void add_losses(KernelTable& table, Isa isa) {
  table.add("cross_entropy", {"native",
                              [isa](const NodeSignature& node, const KernelOptions& options,
                                    std::string& why_not) -> std::unique_ptr<Kernel> {
                                if (!logits_and_labels(node, why_not)) return nullptr;
                                return std::make_unique<CrossEntropy>(node, options.threads, loops_for(isa));
                              }});
  table.add(
      "cross_entropy_backward",
      {"native",
       [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) -> std::unique_ptr<Kernel> {
         if (!logits_and_labels(node, why_not)) return nullptr;
         return std::make_unique<CrossEntropyBackward>(node, options.threads, loops_for(isa));
       }});
}

}  // namespace weft::native
