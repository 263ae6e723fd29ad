#include "weft/train/ranks/step_times.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::train {

namespace {

constexpr size_t kNumbers = 3;  // of each rank

}  // namespace

StepTimes::StepTimes(comm::Communicator* ranks, std::function<double()> clock)
    : ranks_(ranks),
      clock_(std::move(clock)),
      begin_(clock_()),
      round_(static_cast<size_t>(comm::number_of(ranks))),
      slow_ranks_(comm::number_of(ranks)) {
  exchanged_.resize(kNumbers * round_.size());
}

void StepTimes::add(const OwnSeconds& seconds) {
  add_between(seconds);
  ++steps_;
}

void StepTimes::add_between(const OwnSeconds& seconds) {
  sum_.step += seconds.step;
  sum_.input_wait += seconds.input_wait;
  sum_.whole += seconds.whole;
}

bool StepTimes::is_due() const {
  return ranks_ != nullptr && comm::is_first(ranks_) && steps_ >= kRoundSteps && clock_() - begin_ >= kRoundSeconds;
}

void StepTimes::begin_anew() {
  sum_ = {};
  steps_ = 0;
  begin_ = clock_();
}

std::vector<RankPace> StepTimes::exchange(std::span<const int64_t> shares) {
  const size_t own = kNumbers * static_cast<size_t>(ranks_->rank());
  std::fill(exchanged_.begin(), exchanged_.end(), 0);
  exchanged_[own] = sum_.step / steps_;
  exchanged_[own + 1] = sum_.input_wait / steps_;
  exchanged_[own + 2] = sum_.whole / steps_;
  comm::all_reduce_sum(*ranks_, exchanged_, "times of the steps");
  totals_.resize(round_.size());
  for (size_t rank = 0; rank < round_.size(); ++rank) {
    const double* const numbers = &exchanged_[kNumbers * rank];
    round_[rank] = {.step = numbers[0], .input_wait = numbers[1], .whole = numbers[2]};
    totals_[rank] += steps_ * round_[rank].step;
  }
  total_steps_ += steps_;
  begin_anew();
  const double equal = std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(round_.size());
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    const double factor = equal / static_cast<double>(shares[rank]);
    round_[rank].step *= factor;
    round_[rank].input_wait *= factor;
  }
  return slow_ranks_.judge(round_);
}

std::vector<double> StepTimes::means() const {
  std::vector<double> means = totals_;
  for (double& mean : means) mean /= static_cast<double>(total_steps_);
  return means;
}

}  // namespace weft::train
