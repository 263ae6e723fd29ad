// Measures each rank's own part of the steps. Every few seconds the ranks exchange it by a small all-reduce, after a
// step that the first rank's clock chooses and that the step itself announces (Consensus).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/base/clock.h"
#include "weft/comm/communicator.h"
#include "weft/train/ranks/slow_ranks.h"

namespace weft::train {

class StepTimes {
 public:
  /// The least seconds and steps of a round, so that one odd step does not decide the judgement.
  static constexpr double kRoundSeconds = 2;
  static constexpr int kRoundSteps = 2;

  /// Null `ranks`: the process is alone, and nothing happens. The clock gives seconds and is monotonic.
  explicit StepTimes(comm::Communicator* ranks, std::function<double()> clock = steady_seconds);

  /// Adds this rank's times of one step. Does not allocate.
  void add(const OwnSeconds& seconds);
  /// Adds time spent between two steps; it counts for all steps before.
  void add_between(const OwnSeconds& seconds);
  /// On the first rank: whether the round has lasted its seconds and its steps.
  bool is_due() const;
  /// Ends the round; all ranks must call it after the same step. Returns the changes of pace, the same on all ranks.
  /// `shares`: the parts of a batch that the ranks had in this round, where those may differ. Ranks are then compared
  /// by what equal shares would take them.
  std::vector<RankPace> exchange(std::span<const int64_t> shares = {});
  /// Of each rank, as they were compared in the last exchange.
  std::span<const OwnSeconds> round() const { return round_; }
  /// Forgets the steps of a round that has not ended; all ranks must call it before the same step.
  void begin_anew();
  /// Per rank, the mean over all steps of all rounds; empty before the first round.
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
