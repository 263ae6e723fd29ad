// Which rank keeps the others waiting: judged, round by round, by the share of the time that each takes for its own
// part of the steps, however long a step is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft::train {

/// Of one rank, mean seconds per step of a round.
struct OwnSeconds {
  double step = 0;        // without waits for other ranks
  double input_wait = 0;  // of that, in which it waited for its batches
  double whole = 0;       // with waits for other ranks
};

/// What there is to say of a rank.
struct RankPace {
  int rank = 0;
  bool is_slow = true;  // false: it was, and is as fast as the others again
  OwnSeconds own = {};
  double others_step = 0;  // the median of the others
  double factor() const { return own.step / others_step; }
};

/// "rank 3 on host 'b' takes 1.8 times as long per step as the others (0.42 s, 0.23 s), which wait for it; ..."
std::string describe(const RankPace& pace, const comm::Communicator& ranks);

class SlowRanks {
 public:
  /// A rank is slow when in so many rounds in a row its steps took so many times as long as the median of the others',
  /// and what they took longer is at least such a share of all the time: less is not worth a word. It is so no longer
  /// when they took less than kRecovered times as long.
  static constexpr double kSlow = 1.3, kRecovered = 1.15, kLeastShare = 0.05;
  static constexpr int kRounds = 3;

  explicit SlowRanks(int ranks) : standings_(static_cast<size_t>(ranks)) {}
  /// What changed with this round: a rank that became slow, or as fast as the others again, or half as slow again.
  std::vector<RankPace> judge(std::span<const OwnSeconds> round);

 private:
  struct Standing {
    int slow_rounds = 0, fast_rounds = 0, worse_rounds = 0;
    double told_factor = 0;  // 0: it is not slow
  };
  std::optional<RankPace> judge(Standing& standing, const RankPace& now) const;

  std::vector<Standing> standings_;
};

}  // namespace weft::train
