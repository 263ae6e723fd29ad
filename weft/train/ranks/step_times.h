// How long each rank's own part of the steps takes, exchanged every few seconds: a small all-reduce after a step that
// the first rank's clock chooses and the step itself announces (Consensus).
#pragma once

#include <functional>
#include <vector>

#include "weft/base/clock.h"
#include "weft/comm/communicator.h"
#include "weft/train/ranks/slow_ranks.h"

namespace weft::train {

class StepTimes {
 public:
  /// A round takes at least so long and has at least so many steps, so that one odd step is not all that is judged.
  static constexpr double kRoundSeconds = 2;
  static constexpr int kRoundSteps = 2;

  /// Null: a process that is alone, for which nothing happens. The clock: seconds, monotonic.
  explicit StepTimes(comm::Communicator* ranks, std::function<double()> clock = steady_seconds);

  /// What this rank took for a step. Does not allocate.
  void add(const OwnSeconds& seconds);
  /// What it took between two steps, for all steps before.
  void add_between(const OwnSeconds& seconds);
  /// On the first rank: whether a round has had its time and its steps.
  bool is_due() const;
  /// Ends the round; all ranks call it after the same step. What there is to say, alike on all of them.
  std::vector<RankPace> exchange();
  /// By rank, the mean over all steps of all rounds; empty before the first.
  std::vector<double> means() const;

 private:
  comm::Communicator* ranks_;
  const std::function<double()> clock_;
  OwnSeconds sum_;
  int steps_ = 0;
  double begin_ = 0;
  std::vector<double> exchanged_;  // per rank: step, input wait, whole
  std::vector<OwnSeconds> round_;
  std::vector<double> totals_;
  int64_t total_steps_ = 0;
  SlowRanks slow_ranks_;
};

}  // namespace weft::train
