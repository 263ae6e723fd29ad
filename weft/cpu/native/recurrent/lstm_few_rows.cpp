// lstm of at most four rows, as one sample is: all steps in one parallel region, in which each thread has a part of the
// hidden units. It multiplies by the weights as they lie, so that nothing is packed first, and the threads meet once
// per step. A product per step, each a region of its own, would take several times as long as the multiplication.
#include <algorithm>
#include <atomic>
#include <thread>

#include "weft/base/parallel.h"
#include "weft/cpu/native/elementwise/cast.h"
#include "weft/cpu/native/product/few_rows.h"
#include "weft/cpu/native/recurrent/recurrent_gates.h"
#include "weft/cpu/native/support/families.h"
#include "weft/cpu/native/support/stored_type.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

/// T: of the recurrent weights.
template <typename T>
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
        multiply_(multiply_few_rows<T>(isa)),
        round_(cast_range(DType::f32, DType::bf16, isa)),
        gates_(recurrent_gates(isa)) {}
  std::string name() const override { return "native:lstm_few_rows"; }
  int64_t workspace_bytes() const override { return sum_bytes() + 2 * rounded_bytes(); }

  void run(const KernelArguments& a) override {
    Meeting meeting;
    if constexpr (kRounds) round_(rounded(a, 0), a.inputs[3], 0, rows_ * width_);
    parallel_run(threads_, parts_, [&](int part, int parts) { run_part(a, part, parts, meeting); });
  }

 private:
  static constexpr bool kRounds = std::is_same_v<T, Bf16>;
  int64_t sum_bytes() const { return align_up(4 * rows_ * width_ * 4); }
  int64_t rounded_bytes() const { return kRounds ? align_up(rows_ * width_ * 2) : 0; }
  /// The hidden states that a step reads, rounded. The other threads may still read them while this one writes those of
  /// the next step, which lie elsewhere.
  Bf16* rounded(const KernelArguments& a, int64_t step) const {
    return reinterpret_cast<Bf16*>(static_cast<std::byte*>(a.workspace) + sum_bytes() + step % 2 * rounded_bytes());
  }
  const T* states_of(const KernelArguments& a, int64_t step, const float* hidden) const {
    if constexpr (kRounds)
      return rounded(a, step);
    else
      return hidden;
  }
  int64_t time(int64_t step) const { return reverse_ ? steps_ - 1 - step : step; }

  void run_part(const KernelArguments& a, int part, int parts, Meeting& meeting) const {
    const auto [first, last] = split_range((width_ + kUnitsOfLine - 1) / kUnitsOfLine, part, parts);
    const int64_t begin = first * kUnitsOfLine, end = std::min(last * kUnitsOfLine, width_);
    auto* const sums = static_cast<float*>(a.workspace);  // [rows, 4 width], of which each part has some columns
    const int64_t states = rows_ * width_;
    for (int64_t step = 0; step < steps_; ++step) {
      const int64_t at = time(step) * states, before = step == 0 ? 0 : time(step - 1) * states;
      const float* const hidden = step == 0 ? a.input(3) : a.output(0) + before;
      const float* const cells = step == 0 ? a.input(4) : a.output(1) + before;
      for (int64_t gate = 0; gate < 4; ++gate)
        multiply_(states_of(a, step, hidden), a.input<T>(1), rows_, width_, gate * width_ + begin, gate * width_ + end,
                  4 * width_, sums);
      for (int64_t row = 0; row < rows_; ++row) {
        const int64_t own = row * width_ + begin, gates = row * 4 * width_ + begin;
        gates_.lstm({width_, end - begin, a.input(0) + 4 * at + gates, sums + gates, a.input(2) + begin, cells + own,
                     a.output(0) + at + own, a.output(1) + at + own, a.output(2) + 4 * at + gates});
        if constexpr (kRounds) round_(rounded(a, step + 1), a.output(0) + at, own, own + end - begin);
      }
      if (parts > 1 && step + 1 < steps_) meeting.wait(parts);
    }
  }

  const int64_t steps_, rows_, width_;
  const int parts_, threads_;
  const bool reverse_;
  const MultiplyFewRows<T> multiply_;
  const CastRange round_;
  const RecurrentGates& gates_;
};

}  // namespace

void add_lstm_few_rows(KernelTable& table, Isa isa) {
  table.add("lstm", {"native",
                     [isa](const NodeSignature& node, const KernelOptions& options,
                           std::string& why_not) -> std::unique_ptr<Kernel> {
                       if (!is_plain_recurrence(node, why_not)) return nullptr;
                       const DType dtype = node.inputs[1].dtype;
                       if (!is_stored_type(dtype))
                         return declined(why_not, "weights are " + std::string(name_of(dtype)));
                       const Shape& states = node.outputs[0].shape;
                       if (states.elements() == 0) return declined(why_not, "there is nothing to compute");
                       if (states[1] > kMostRows) return declined(why_not, "more than four rows");
                       return with_stored_type(dtype, [&](auto number) -> std::unique_ptr<Kernel> {
                         return std::make_unique<LstmFewRows<decltype(number)>>(node, options.threads, isa);
                       });
                     }});
}

}  // namespace weft::native
