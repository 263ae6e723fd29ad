// argmax along any axis of a plain tensor, and the count of rows whose largest logit is the label.
#include <fmt/format.h>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

struct Loops {
  int64_t (*row)(const float* x, int64_t count);
  void (*columns)(const float* x, int64_t length, int64_t stride, int64_t width, int32_t* places);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/reduce/argmax_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kTile = 256;       // columns searched together
constexpr int64_t kGrain = 1 << 15;  // elements that are worth a thread

/// The last axis: whole rows, or, where there are fewer than threads, parts of them.
class ArgmaxRows : public Kernel {
 public:
  ArgmaxRows(int64_t rows, int64_t width, int threads, const Loops& loops)
      : loops_(loops), rows_(rows), width_(width), threads_(threads) {
    workers_ = static_cast<int>(std::clamp<int64_t>(rows * width / kGrain, 1, threads));
    parts_ = rows_ >= workers_ ? 1 : workers_;
  }
  std::string name() const override { return "native:argmax"; }
  int64_t workspace_bytes() const override { return parts_ == 1 ? 0 : rows_ * parts_ * 8; }

  void run(const KernelArguments& a) override {
    const auto* x = static_cast<const float*>(a.inputs[0]);
    auto* places = static_cast<int32_t*>(a.outputs[0]);
    auto* of_parts = static_cast<int64_t*>(a.workspace);
    parallel_run(threads_, workers_, [&](int worker, int workers) {
      const auto [first, last] = split_range(rows_ * parts_, worker, workers);
      for (int64_t task = first; task < last; ++task) {
        const float* row = x + task / parts_ * width_;
        const auto [begin, end] = split_range(width_, static_cast<int>(task % parts_), parts_);
        const int64_t place = begin + loops_.row(row + begin, end - begin);
        if (parts_ == 1)
          places[task] = static_cast<int32_t>(place);
        else
          of_parts[task] = place;
      }
    });
    if (parts_ > 1)
      for (int64_t row = 0; row < rows_; ++row)
        places[row] = static_cast<int32_t>(first_of(x + row * width_, of_parts + row * parts_));
  }

 private:
  int64_t first_of(const float* row, const int64_t* candidates) const {
    int64_t best = candidates[0];
    for (int part = 1; part < parts_; ++part) {
      const float value = row[candidates[part]], most = row[best];
      if (value > most || (std::isnan(value) && !std::isnan(most))) best = candidates[part];
    }
    return best;
  }

  const Loops& loops_;
  const int64_t rows_, width_;
  const int threads_;
  int workers_ = 1, parts_ = 1;  // threads that have work, and parts of a row
};

/// Any other axis: columns beside each other.
class ArgmaxColumns : public Kernel {
 public:
  ArgmaxColumns(int64_t outer, int64_t length, int64_t inner, int threads, const Loops& loops)
      : loops_(loops),
        outer_(outer),
        length_(length),
        inner_(inner),
        tiles_((inner + kTile - 1) / kTile),
        threads_(threads),
        workers_(static_cast<int>(std::clamp<int64_t>(outer * length * inner / kGrain, 1, threads))) {}
  std::string name() const override { return "native:argmax"; }

  void run(const KernelArguments& a) override {
    const auto* x = static_cast<const float*>(a.inputs[0]);
    auto* places = static_cast<int32_t*>(a.outputs[0]);
    parallel_run(threads_, workers_, [&](int worker, int workers) {
      const auto [first, last] = split_range(outer_ * tiles_, worker, workers);
      for (int64_t task = first; task < last; ++task) {
        const int64_t block = task / tiles_, column = task % tiles_ * kTile;
        loops_.columns(x + block * length_ * inner_ + column, length_, inner_, std::min(kTile, inner_ - column),
                       places + block * inner_ + column);
      }
    });
  }

 private:
  const Loops& loops_;
  const int64_t outer_, length_, inner_, tiles_;
  const int threads_, workers_;
};

class CountCorrect : public Kernel {
 public:
  CountCorrect(const NodeSignature& node, int threads, const Loops& loops)
      : loops_(loops), rows_(node.inputs[0].shape[0]), width_(node.inputs[0].shape[1]), threads_(threads) {}
  std::string name() const override { return "native:count_correct"; }
  int64_t workspace_bytes() const override { return threads_ * 8; }

  void run(const KernelArguments& a) override {
    const auto* logits = static_cast<const float*>(a.inputs[0]);
    const auto* labels = static_cast<const int32_t*>(a.inputs[1]);
    auto* counts = static_cast<int64_t*>(a.workspace);
    const int used = static_cast<int>(std::clamp<int64_t>(rows_ * width_ / kGrain, 1, threads_));
    std::fill(counts, counts + used, 0);
    parallel_run(threads_, used, [&](int thread, int count) {
      const auto [begin, end] = split_range(rows_, thread, count);
      int64_t correct = 0;
      for (int64_t row = begin; row < end; ++row)
        if (loops_.row(logits + row * width_, width_) == labels[row]) ++correct;
      counts[thread] = correct;
    });
    int64_t correct = 0;
    for (int thread = 0; thread < used; ++thread) correct += counts[thread];
    *static_cast<float*>(a.outputs[0]) = static_cast<float>(correct);
  }

 private:
  const Loops& loops_;
  const int64_t rows_, width_;
  const int threads_;
};

}  // namespace

void add_argmax(KernelTable& table, Isa isa) {
  table.add(
      "argmax",
      {"native",
       [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) -> std::unique_ptr<Kernel> {
         if (!all_plain(node, why_not)) return nullptr;
         const Shape& shape = node.inputs[0].shape;
         if (node.inputs[0].dtype != DType::f32) return declined(why_not, "the input is not f32");
         if (shape.elements() == 0) return declined(why_not, "the input is empty");
         const int64_t given = node.attributes.integer("axis");
         const int axis = static_cast<int>(given < 0 ? given + shape.rank() : given);
         const int64_t length = shape[axis], inner = row_major_strides(shape)[static_cast<size_t>(axis)];
         const int64_t outer = shape.elements() / (length * inner);
         if (inner == 1) return std::make_unique<ArgmaxRows>(outer, length, options.threads, loops_for(isa));
         return std::make_unique<ArgmaxColumns>(outer, length, inner, options.threads, loops_for(isa));
       }});
  table.add("count_correct", {"native",
                              [isa](const NodeSignature& node, const KernelOptions& options,
                                    std::string& why_not) -> std::unique_ptr<Kernel> {
                                if (!logits_and_labels(node, why_not)) return nullptr;
                                return std::make_unique<CountCorrect>(node, options.threads, loops_for(isa));
                              }});
}

}  // namespace weft::native
