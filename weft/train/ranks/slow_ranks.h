// Finds ranks that keep the others waiting. Each round compares the time that each rank takes for its own part of the
// steps, relative to the others, however long a step is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft::train {

/// Mean seconds per step of one rank in one round.
struct OwnSeconds {
  double step = 0;        // without waits for other ranks
  double input_wait = 0;  // part of `step` in which it waited for its batches
  double whole = 0;       // with waits for other ranks
};

/// A change in the pace of one rank.
struct RankPace {
  int rank = 0;
  bool is_slow = true;  // false: it was slow, and is as fast as the others again
  OwnSeconds own = {};
  double others_step = 0;  // median of the other ranks
  double factor() const { return own.step / others_step; }
};

/// "rank 3 on host 'b' takes 1.8 times as long per step as the others (0.42 s, 0.23 s), which wait for it; ...".
/// `of_equal_shares`: the ranks may have different shares of a batch, and the times are those of equal ones.
std::string describe(const RankPace& pace, const comm::Communicator& ranks, bool of_equal_shares = false);

class SlowRanks {
 public:
  /// A rank is slow when its steps took more than kSlow times the median of the others in kRounds rounds in a row, and
  /// the excess is more than kLeastShare of the whole time. It is no longer slow when its steps took less than
  /// kRecovered times the median.
  static constexpr double kSlow = 1.3, kRecovered = 1.15, kLeastShare = 0.05;
  static constexpr int kRounds = 3;

  explicit SlowRanks(int ranks) : standings_(static_cast<size_t>(ranks)) {}
  /// What changed with this round: a rank that became slow, became as fast as the others again, or became half as slow
  /// again.
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
