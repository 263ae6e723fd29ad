#include "weft/simulate/pipeline_order.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "weft/base/error.h"

namespace weft::simulate {

namespace {

using passes::PipelineWork;
using Order = passes::PipelineOrder;

Order gpipe(int stages, int micro_batches) {
  Order order(static_cast<size_t>(stages));
  for (auto& steps : order) {
    for (int m = 0; m < micro_batches; ++m) steps.push_back({PipelineWork::forward, m});
    for (int m = micro_batches - 1; m >= 0; --m) steps.push_back({PipelineWork::backward, m});
  }
  return order;
}

Order one_forward_one_backward(int stages, int micro_batches, int chunks) {
  if (chunks > 1 && micro_batches % stages != 0)
    fail(ErrorKind::usage,
         "interleaved stages want as many micro-batches as a multiple of the {} stages, there are {}; choose another "
         "batch, or chunks=1",
         stages, micro_batches);
  return passes::make_pipeline_schedule(chunks > 1 ? "interleaved" : "1f1b", stages, micro_batches, chunks).order;
}

/// Greedy: what others wait for first, gradients of weights where nothing else can be done, or memory is used up.
class ZeroBubble {
 public:
  ZeroBubble(int stages, int micro_batches, int factor, double forward, double backward, double weights)
      : stages_(stages), micro_batches_(micro_batches), factor_(factor), seconds_{forward, backward, weights} {}

  Order run() {
    const auto count = static_cast<size_t>(stages_);
    Order order(count);
    free_.assign(count, 0);
    done_.assign(count, {0, 0, 0});
    ends_.assign(count, std::vector<std::array<double, 2>>(static_cast<size_t>(micro_batches_), {kNever, kNever}));
    for (int64_t left = int64_t{3} * stages_ * micro_batches_; left > 0; --left) {
      // The stage that can begin something first does so.
      size_t best_stage = 0;
      Kind best_kind = Kind::weights;
      double best_begin = kNever;
      for (size_t stage = 0; stage < count; ++stage) {
        const auto [kind, begin] = next(stage);
        if (begin < best_begin) best_stage = stage, best_kind = kind, best_begin = begin;
      }
      check(best_begin < kNever, "a pipeline that waits for itself");
      int& number = done_[best_stage][static_cast<size_t>(best_kind)];
      order[best_stage].push_back({work_of(best_kind), number});
      free_[best_stage] = best_begin + seconds_[static_cast<size_t>(best_kind)];
      if (best_kind != Kind::weights)
        ends_[best_stage][static_cast<size_t>(number)][static_cast<size_t>(best_kind)] = free_[best_stage];
      ++number;
    }
    return order;
  }

 private:
  enum class Kind { forward, backward, weights };  // places in the arrays below
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static PipelineWork work_of(Kind kind) {
    constexpr PipelineWork works[] = {PipelineWork::forward, PipelineWork::backward_inputs,
                                      PipelineWork::backward_weights};
    return works[static_cast<size_t>(kind)];
  }

  double ready(size_t stage, Kind kind) const {
    const int number = done_[stage][static_cast<size_t>(kind)];
    if (number == micro_batches_) return kNever;
    const auto m = static_cast<size_t>(number);
    if (kind == Kind::forward) return stage == 0 ? 0 : ends_[stage - 1][m][0];
    if (kind == Kind::backward)
      return stage + 1 == ends_.size() ? ends_[stage][m][0] : std::max(ends_[stage][m][0], ends_[stage + 1][m][1]);
    return ends_[stage][m][1];
  }

  std::pair<Kind, double> next(size_t stage) const {
    const double now = free_[stage];
    const int held = done_[stage][0] - done_[stage][2];         // micro-batches whose activations are kept
    const int most = factor_ == 1 ? stages_ : 2 * stages_ - 1;  // as 1F1B's first stage keeps, or twice that
    const double backward = std::max(now, ready(stage, Kind::backward));
    const double forward = held < most ? std::max(now, ready(stage, Kind::forward)) : kNever;
    const double weights = std::max(now, ready(stage, Kind::weights));
    if (backward <= now) return {Kind::backward, backward};
    if (forward <= now) return {Kind::forward, forward};
    // Weights fill the gap where they end before something more urgent is there.
    const double urgent = std::min(backward, forward);
    if (weights < kNever && weights + 0.5 * seconds_[2] <= urgent) return {Kind::weights, weights};
    if (urgent < kNever)
      return backward <= forward ? std::pair{Kind::backward, backward} : std::pair{Kind::forward, forward};
    return {Kind::weights, weights};
  }

  const int stages_, micro_batches_, factor_;
  const std::array<double, 3> seconds_;
  std::vector<double> free_;
  std::vector<std::array<int, 3>> done_;
  std::vector<std::vector<std::array<double, 2>>> ends_;  // of forward and backward, per stage and micro-batch
};

/// As weft runs it.
Order zero_bubble_of_weft(PipelineSchedule schedule, int stages, int micro_batches, int chunks, double forward,
                          double backward, double weights) {
  const auto all = static_cast<size_t>(stages * chunks);
  const passes::PipelineTimes times{.forward = std::vector<double>(all, forward),
                                    .backward_inputs = std::vector<double>(all, backward),
                                    .backward_weights = std::vector<double>(all, weights)};
  return passes::make_pipeline_schedule(name_of(schedule), stages, micro_batches, chunks, times).order;
}

}  // namespace

passes::StagePlacement placement_of(PipelineSchedule schedule, int stages, int chunks) {
  return {.ranks = stages, .chunks = chunks, .is_v = schedule == PipelineSchedule::zero_bubble_v};
}

Order pipeline_order(PipelineSchedule schedule, int stages, int micro_batches, int chunks, double forward,
                     double backward, double weights) {
  const bool has_chunks =
      schedule == PipelineSchedule::one_forward_one_backward || schedule == PipelineSchedule::zero_bubble_v;
  if (chunks > 1 && !has_chunks)
    fail(ErrorKind::usage, "schedule={} has no interleaved form; choose chunks=1, or schedule=1f1b", name_of(schedule));
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return gpipe(stages, micro_batches);
    case PipelineSchedule::zero_bubble_1:
      return ZeroBubble(stages, micro_batches, 1, forward, backward, weights).run();
    case PipelineSchedule::zero_bubble_2:
      return ZeroBubble(stages, micro_batches, 2, forward, backward, weights).run();
    case PipelineSchedule::zero_bubble:
    case PipelineSchedule::zero_bubble_v:
      return zero_bubble_of_weft(schedule, stages, micro_batches, chunks, forward, backward, weights);
    default:
      return one_forward_one_backward(stages, micro_batches, chunks);
  }
}

}  // namespace weft::simulate
