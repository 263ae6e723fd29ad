// How long each rank's own part of a step takes, exchanged every few seconds: a small all-reduce after a step that the
// first rank's clock chooses and the step itself announces (Consensus).
#pragma once

#include <chrono>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/train/ranks/slow_ranks.h"

namespace weft::train {

class StepTimes {
 public:
  /// Null: a process that is alone, for which nothing happens.
  explicit StepTimes(comm::Communicator* ranks);

  /// What this rank took for a step. Does not allocate.
  void add(const OwnSeconds& seconds);
  /// On the first rank: whether a round has had its time and its steps.
  bool is_due() const;
  /// Ends the round; all ranks call it after the same step. What there is to say, alike on all of them.
  std::vector<RankPace> exchange();
  /// By rank, the mean over all steps of all rounds; empty before the first.
  std::vector<double> means() const;

 private:
  using Clock = std::chrono::steady_clock;

  comm::Communicator* ranks_;
  OwnSeconds sum_;
  int steps_ = 0;
  Clock::time_point begin_ = Clock::now();
  std::vector<double> exchanged_;  // per rank: step, input wait
  std::vector<OwnSeconds> round_;
  std::vector<double> totals_;
  int64_t total_steps_ = 0;
  SlowRanks slow_ranks_;
};

}  // namespace weft::train
