// ctc_loss and its gradient: sequences in parallel, their states in vectors. Each step's logarithms are kept relative
// to their largest, so that single precision is enough for any number of steps.
#include <array>
#include <cmath>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

constexpr float kImpossible = -1e30f;

struct Loops {
  void (*step_forward)(const float* before, const float* skip, const float* emission, float* row, int64_t count);
  void (*step_backward)(const float* after, const float* skip, float* row, int64_t count);
  float (*largest)(const float* row, int64_t count);
  void (*combine)(const float* a, const float* b, float factor, float offset, float* to, int64_t count);
  void (*exponentials)(float* row, int64_t count);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/reduce/ctc_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

struct Sizes {
  int64_t steps, batch, classes, targets;
  int32_t blank;
  bool zero_infinity, has_input_lengths, has_target_lengths;
};

/// Memory of one thread: rows of states with two more on either side.
class Rows {
 public:
  Rows(const Sizes& sizes, void* memory)
      : row_(row_floats(sizes)),
        floats_(static_cast<float*>(memory) + 2),
        scales_(reinterpret_cast<double*>(static_cast<float*>(memory) + count(sizes) * row_)),
        labels_(reinterpret_cast<int32_t*>(scales_ + sizes.steps)) {}
  static int64_t bytes(const Sizes& sizes) {
    return align_up(count(sizes) * row_floats(sizes) * 4) + align_up(sizes.steps * 8) + align_up(row_floats(sizes) * 4);
  }
  float* skip() const { return floats_; }
  float* emission() const { return floats_ + row_; }
  float* beta() const { return floats_ + 2 * row_; }
  float* after() const { return floats_ + 3 * row_; }
  float* alpha(int64_t t) const { return floats_ + (4 + t) * row_; }
  /// What was taken off alpha(0..t) in all.
  double& scale(int64_t t) const { return scales_[t]; }
  /// The class of each state: labels with a blank before, between and behind them.
  int32_t* labels() const { return labels_; }

 private:
  static int64_t row_floats(const Sizes& sizes) { return align_up((2 * sizes.targets + 5) * 4) / 4; }
  static int64_t count(const Sizes& sizes) { return sizes.steps + 4; }

  int64_t row_;
  float* floats_;
  double* scales_;
  int32_t* labels_;
};

class Ctc : public Kernel {
 public:
  Ctc(const NodeSignature& node, const KernelOptions& options, const Loops& loops, size_t first)
      : loops_(loops),
        first_(first),
        name_("native:" + node.op->name),
        sizes_{node.inputs[first].shape[0],
               node.inputs[first].shape[1],
               node.inputs[first].shape[2],
               node.inputs[first + 1].shape[1],
               static_cast<int32_t>(node.attributes.integer("blank")),
               node.attributes.boolean("zero_infinity"),
               node.inputs.size() > first + 2,
               node.inputs.size() > first + 3},
        threads_(options.threads),
        parts_(static_cast<int>(std::min<int64_t>(options.threads, sizes_.batch))) {}
  std::string name() const override { return name_; }
  int64_t workspace_bytes() const override { return parts_ * Rows::bytes(sizes_); }
  void run(const KernelArguments& a) override {
    parallel_run(threads_, parts_, [&](int thread, int threads) {
      const auto [first, last] = split_range(parts_, thread, threads);
      for (int64_t part = first; part < last; ++part) {
        const Rows rows(sizes_, static_cast<std::byte*>(a.workspace) + part * Rows::bytes(sizes_));
        const auto [begin, end] = split_range(sizes_.batch, static_cast<int>(part), parts_);
        for (int64_t n = begin; n < end; ++n) run_sequence(a, n, rows);
      }
    });
  }

 protected:
  struct Sequence {
    const float* log_probabilities;
    int64_t steps, states;
  };
  virtual void run_sequence(const KernelArguments& a, int64_t n, const Rows& rows) const = 0;

  /// Fills labels and skips; false where lengths or labels do not fit.
  bool prepare(const KernelArguments& a, int64_t n, const Rows& rows, Sequence& q) const {
    const auto* targets = static_cast<const int32_t*>(a.inputs[first_ + 1]) + n * sizes_.targets;
    const auto length = [&](bool given, size_t operand, int64_t otherwise) -> int64_t {
      return given ? static_cast<const int32_t*>(a.inputs[operand])[n] : otherwise;
    };
    const int64_t steps = length(sizes_.has_input_lengths, first_ + 2, sizes_.steps);
    const auto is_padding = [&](int32_t label) { return label < 0 || label == sizes_.blank; };
    const int64_t unpadded = std::find_if(targets, targets + sizes_.targets, is_padding) - targets;
    const int64_t count = length(sizes_.has_target_lengths, first_ + 3, unpadded);
    if (steps < 0 || steps > sizes_.steps || count < 0 || count > sizes_.targets) return false;
    q = {static_cast<const float*>(a.inputs[first_]) + n * sizes_.classes, steps, 2 * count + 1};
    std::fill_n(rows.skip() - 2, q.states + 4, kImpossible);
    for (int64_t i = 0; i < count; ++i) {
      if (targets[i] < 0 || targets[i] >= sizes_.classes || targets[i] == sizes_.blank) return false;
      rows.labels()[2 * i] = sizes_.blank;
      rows.labels()[2 * i + 1] = targets[i];
      if (i > 0 && targets[i] != targets[i - 1]) rows.skip()[2 * i + 1] = 0;
    }
    rows.labels()[2 * count] = sizes_.blank;
    return true;
  }

  void read_emission(const Sequence& q, int64_t t, const Rows& rows) const {
    const float* of_step = q.log_probabilities + t * sizes_.batch * sizes_.classes;
    for (int64_t s = 0; s < q.states; ++s) {
      const float value = of_step[rows.labels()[s]];
      rows.emission()[s] = value < kImpossible ? kImpossible : value;
    }
  }

  /// Takes the largest off the row and returns it; leaves a row without anything possible as it is.
  float rescale(float* row, int64_t states) const {
    const float best = loops_.largest(row, states);
    if (best < kImpossible / 2) return best;
    loops_.combine(row, row, 0, -best, row, states);
    row[-1] = row[-2] = row[states] = row[states + 1] = kImpossible;
    return best;
  }

  /// Fills the alphas; the logarithm of the target's probability, -infinity where there is no way.
  double forward(const Sequence& q, const Rows& rows) const {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    if (q.steps == 0) return q.states == 1 ? 0 : kNever;
    double scale = 0;
    for (int64_t t = 0; t < q.steps; ++t) {
      float* row = rows.alpha(t);
      read_emission(q, t, rows);
      if (t == 0) {
        std::fill_n(row - 2, q.states + 4, kImpossible);
        for (int64_t s = 0; s < std::min<int64_t>(2, q.states); ++s) row[s] = rows.emission()[s];
      } else {
        loops_.step_forward(rows.alpha(t - 1), rows.skip(), rows.emission(), row, q.states);
      }
      const float best = rescale(row, q.states);
      if (best < kImpossible / 2) return kNever;
      scale += static_cast<double>(best);
      rows.scale(t) = scale;
    }
    const float* last = rows.alpha(q.steps - 1);
    double sum = std::exp(static_cast<double>(last[q.states - 1]));
    if (q.states > 1) sum += std::exp(static_cast<double>(last[q.states - 2]));
    return scale + std::log(sum);
  }

  const Loops& loops_;
  const size_t first_;  // position of the log-probabilities among the operands
  const std::string name_;
  const Sizes sizes_;
  const int threads_, parts_;
};

class CtcLoss final : public Ctc {
  using Ctc::Ctc;
  void run_sequence(const KernelArguments& a, int64_t n, const Rows& rows) const override {
    Sequence q{};
    double loss = std::numeric_limits<double>::quiet_NaN();
    if (prepare(a, n, rows, q)) loss = -forward(q, rows);
    if (std::isinf(loss) && sizes_.zero_infinity) loss = 0;
    static_cast<float*>(a.outputs[0])[n] = static_cast<float>(loss);
  }
};

class CtcLossBackward final : public Ctc {
  using Ctc::Ctc;
  void run_sequence(const KernelArguments& a, int64_t n, const Rows& rows) const override {
    Sequence q{};
    const bool valid = prepare(a, n, rows, q);
    const double total = valid ? forward(q, rows) : 0;
    const bool possible = valid && !std::isinf(total);
    const float elsewhere = possible || (valid && sizes_.zero_infinity) ? 0 : std::numeric_limits<float>::quiet_NaN();
    const auto gradient = [&](int64_t t) {
      return static_cast<float*>(a.outputs[0]) + (t * sizes_.batch + n) * sizes_.classes;
    };
    for (int64_t t = 0; t < sizes_.steps; ++t) std::fill_n(gradient(t), sizes_.classes, elsewhere);
    if (!possible) return;
    const float weight = static_cast<const float*>(a.inputs[0])[n];
    double scale = 0;  // what was taken off the betas
    for (int64_t t = q.steps - 1; t >= 0; --t) {
      float *beta = rows.beta(), *after = rows.after();
      if (t == q.steps - 1) {
        std::fill_n(beta - 2, q.states + 4, kImpossible);
        for (int64_t s = std::max<int64_t>(0, q.states - 2); s < q.states; ++s) beta[s] = 0;
      } else {
        read_emission(q, t + 1, rows);
        loops_.combine(beta, rows.emission(), 1, 0, after, q.states);
        after[q.states] = after[q.states + 1] = kImpossible;
        loops_.step_backward(after, rows.skip(), beta, q.states);
        scale += static_cast<double>(rescale(beta, q.states));
      }
      const auto offset = static_cast<float>(rows.scale(t) + scale - total);
      loops_.combine(rows.alpha(t), beta, 1, offset, after, q.states);
      loops_.exponentials(after, q.states);
      for (int64_t s = 0; s < q.states; ++s) gradient(t)[rows.labels()[s]] -= weight * after[s];
    }
  }
};

template <typename CtcKernel>
void add(KernelTable& table, const char* op, size_t first, Isa isa) {
  table.add(op, {"native",
                 [first, isa](const NodeSignature& node, const KernelOptions& options,
                              std::string& why_not) -> std::unique_ptr<Kernel> {
                   if (!all_plain(node, why_not)) return nullptr;
                   for (const size_t operand : {size_t{0}, first})
                     if (node.inputs[operand].dtype != DType::f32)
                       return declined(why_not, "not f32: " + to_string(node.inputs[operand]));
                   if (node.inputs[first].elements() == 0) return declined(why_not, "there are no steps");
                   return std::make_unique<CtcKernel>(node, options, loops_for(isa), first);
                 }});
}

}  // namespace

void add_ctc(KernelTable& table, Isa isa) {
  add<CtcLoss>(table, "ctc_loss", 0, isa);
  add<CtcLossBackward>(table, "ctc_loss_backward", 1, isa);
}

}  // namespace weft::native
