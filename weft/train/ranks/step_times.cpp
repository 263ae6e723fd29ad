#include "weft/train/ranks/step_times.h"

#include <algorithm>

#include "weft/comm/exchange.h"
#include "weft/comm/together.h"

namespace weft::train {

namespace {

constexpr std::chrono::seconds kRoundTime{2};
constexpr int kRoundSteps = 8;

}  // namespace

StepTimes::StepTimes(comm::Communicator* ranks)
    : ranks_(ranks), round_(static_cast<size_t>(comm::number_of(ranks))), slow_ranks_(comm::number_of(ranks)) {
  exchanged_.resize(2 * round_.size());
}

void StepTimes::add(const OwnSeconds& seconds) {
  sum_.step += seconds.step;
  sum_.input_wait += seconds.input_wait;
  ++steps_;
}

bool StepTimes::is_due() const {
  return ranks_ != nullptr && comm::is_first(ranks_) && steps_ >= kRoundSteps && Clock::now() - begin_ >= kRoundTime;
}

std::vector<RankPace> StepTimes::exchange() {
  const auto own = static_cast<size_t>(2 * ranks_->rank());
  std::fill(exchanged_.begin(), exchanged_.end(), 0);
  exchanged_[own] = sum_.step / steps_;
  exchanged_[own + 1] = sum_.input_wait / steps_;
  comm::all_reduce_sum(*ranks_, exchanged_, "times of the steps");
  totals_.resize(round_.size());
  for (size_t rank = 0; rank < round_.size(); ++rank) {
    round_[rank] = {.step = exchanged_[2 * rank], .input_wait = exchanged_[2 * rank + 1]};
    totals_[rank] += steps_ * round_[rank].step;
  }
  total_steps_ += steps_;
  sum_ = {};
  steps_ = 0;
  begin_ = Clock::now();
  return slow_ranks_.judge(round_);
}

std::vector<double> StepTimes::means() const {
  std::vector<double> means = totals_;
  for (double& mean : means) mean /= static_cast<double>(total_steps_);
  return means;
}

}  // namespace weft::train
