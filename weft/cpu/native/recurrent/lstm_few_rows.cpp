// lstm of at most four rows, as one sample is: all steps in one parallel region, in which each thread has a part of the
// hidden units. It multiplies by the weights as they lie, so that nothing is packed first, and the threads meet once
// per step. A product per step, each a region of its own, would take several times as long as the multiplication.
#include <algorithm>
#include <atomic>
#include <thread>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft::native {

namespace {

/// Rows of gates are [4 width], one gate after the other; those of states [width].
struct LstmStep {
  int64_t width;
  const float *weight, *bias;  // [4 width, width], [4 width]
  const float *hidden_before, *cell_before;
  const float* projected;
  float *output, *cell, *gates;
};

struct Loops {
  /// Units [begin, end) of one row. `sums` holds 4 (end - begin) numbers.
  void (*lstm_units)(const LstmStep&, int64_t begin, int64_t end, float* sums);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/recurrent/lstm_few_rows_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kMostRows = 4;
constexpr int64_t kUnitsOfLine = 16;      // of a cache line, which two threads should not share
constexpr int64_t kWorthAThread = 16384;  // elements of the weights, for which a thread is worth meeting once per step

/// Where the threads of a region wait for each other: they spin, as the others come within microseconds, and let other
/// processes have the core where that takes longer.
class Meeting {
 public:
  /// `members`: how many there are, which all say alike.
  void wait(int members) {
    const uint32_t turn = turn_.load(std::memory_order_relaxed);
    if (come_.fetch_add(1, std::memory_order_acq_rel) + 1 == members) {
      come_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; turn_.load(std::memory_order_acquire) == turn; ++spins)
      if (spins > kSpins)
        std::this_thread::yield();
      else
        pause();
  }

 private:
  static constexpr int kSpins = 4000;
  static void pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }

  std::atomic<int> come_ = 0;
  std::atomic<uint32_t> turn_ = 0;
};

class LstmFewRows : public Kernel {
 public:
  LstmFewRows(const NodeSignature& node, int threads, Isa isa)
      : steps_(node.outputs[0].shape[0]),
        rows_(node.outputs[0].shape[1]),
        width_(node.outputs[0].shape[2]),
        parts_(static_cast<int>(std::clamp<int64_t>(
            std::min(4 * width_ * width_ / kWorthAThread, (width_ + kUnitsOfLine - 1) / kUnitsOfLine), 1, threads))),
        threads_(threads),
        reverse_(node.attributes.boolean("reverse")),
        units_(loops_for(isa).lstm_units) {}
  std::string name() const override { return "native:lstm_few_rows"; }
  int64_t workspace_bytes() const override { return parts_ * part_bytes(); }

  void run(const KernelArguments& a) override {
    Meeting meeting;
    parallel_run(threads_, parts_, [&](int part, int parts) { run_part(a, part, parts, meeting); });
  }

 private:
  int64_t part_bytes() const { return align_up(4 * (width_ + kUnitsOfLine) * 4); }
  int64_t time(int64_t step) const { return reverse_ ? steps_ - 1 - step : step; }

  void run_part(const KernelArguments& a, int part, int parts, Meeting& meeting) const {
    const auto [first, last] = split_range((width_ + kUnitsOfLine - 1) / kUnitsOfLine, part, parts);
    const int64_t begin = first * kUnitsOfLine, end = std::min(last * kUnitsOfLine, width_);
    auto* const sums = reinterpret_cast<float*>(static_cast<std::byte*>(a.workspace) + part * part_bytes());
    const int64_t states = rows_ * width_;
    for (int64_t step = 0; step < steps_; ++step) {
      const int64_t at = time(step) * states, before = step == 0 ? 0 : time(step - 1) * states;
      for (int64_t row = 0; row < rows_ && begin < end; ++row) {
        const int64_t own = row * width_;
        units_({.width = width_,
                .weight = a.input(1),
                .bias = a.input(2),
                .hidden_before = (step == 0 ? a.input(3) : a.output(0) + before) + own,
                .cell_before = (step == 0 ? a.input(4) : a.output(1) + before) + own,
                .projected = a.input(0) + 4 * (at + own),
                .output = a.output(0) + at + own,
                .cell = a.output(1) + at + own,
                .gates = a.output(2) + 4 * (at + own)},
               begin, end, sums);
      }
      if (parts > 1 && step + 1 < steps_) meeting.wait(parts);
    }
  }

  const int64_t steps_, rows_, width_;
  const int parts_, threads_;
  const bool reverse_;
  void (*const units_)(const LstmStep&, int64_t, int64_t, float*);
};

}  // namespace

void add_lstm_few_rows(KernelTable& table, Isa isa) {
  table.add("lstm", {"native",
                     [isa](const NodeSignature& node, const KernelOptions& options,
                           std::string& why_not) -> std::unique_ptr<Kernel> {
                       if (!all_plain_f32(node, why_not)) return nullptr;
                       const Shape& states = node.outputs[0].shape;
                       if (states.elements() == 0) return declined(why_not, "there is nothing to compute");
                       if (loops_for(isa).lstm_units == nullptr) return declined(why_not, "the processor has no AVX2");
                       if (states[1] > kMostRows) return declined(why_not, "more than four rows");
                       return std::make_unique<LstmFewRows>(node, options.threads, isa);
                     }});
}

}  // namespace weft::native
