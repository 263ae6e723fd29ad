// Relieves ranks that stay slow: they take fewer grains of each batch, the others more (step/grains.h). Shares follow
// the times that ranks exchange anyway (StepTimes). As all ranks judge by the same numbers, they order the same change,
// which holds from a later step on: the batches before are under way already.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/spec/run_spec.h"
#include "weft/train/ranks/slow_ranks.h"

namespace weft::data {
class Loader;
}

namespace weft::train {

/// Grains of each rank.
struct ShareChange {
  int64_t from_step = 0;  // steps done before the first one with the new shares
  std::vector<int64_t> before, after;
};

/// "from step 215 on, by their speed, rank 0 on host 'a' takes 11 of 16 grains of each batch (before 8), rank 1 ..."
std::string describe(const ShareChange& change, const comm::Communicator& ranks);

/// Decides by rounds of measurements; knows no ranks.
class ShareJudge {
 public:
  /// Shares change when others would have made the slowest rank's time shorter by more than kGain in each of kRounds
  /// rounds in a row. They then follow the median of these rounds.
  static constexpr double kGain = 0.05;
  static constexpr int kRounds = 3;

  explicit ShareJudge(std::vector<int64_t> shares) : shares_(std::move(shares)) {}
  const std::vector<int64_t>& shares() const { return shares_; }
  /// `seconds`: per rank, what a grain has taken with these shares, in any unit. Returns whether the shares changed. A
  /// round in which some rank was not measured counts for nothing.
  bool judge(std::span<const double> seconds);
  /// Forgets the rounds so far.
  void begin_anew() { rounds_.clear(); }

 private:
  std::vector<int64_t> shares_;
  std::vector<std::vector<double>> rounds_;
};

class Relief {
 public:
  /// Does nothing where the spec has no grains. `recorded`: shares of a checkpoint. Keeps references. Null `ranks`: the
  /// process is alone, and has all grains. All ranks construct it together, before the loader starts.
  Relief(const spec::RunSpec& spec, comm::Communicator* ranks, data::Loader& loader,
         const std::vector<int64_t>& recorded);

  bool is_on() const { return grains_ > 0; }
  /// Of each rank, in the steps at hand; empty where it is off.
  const std::vector<int64_t>& shares() const { return shares_; }
  /// Grains of this rank, and the first of them.
  int64_t own() const { return shares_[static_cast<size_t>(rank_)]; }
  int64_t first() const;
  /// What a grain counts in the mean over the ranks.
  double share_of_grain() const { return static_cast<double>(shares_.size()) / static_cast<double>(grains_); }

  /// Call before each step; `step`: those done. True where other shares hold from it on.
  bool begin_step(int64_t step);
  /// Call after an exchange of times; all ranks must do so after the same step. `round`: StepTimes::round(). Returns
  /// the change that was ordered, if one was.
  std::optional<ShareChange> judge(int64_t step, std::span<const OwnSeconds> round);

 private:
  const int64_t grains_;
  const bool by_speed_;
  const int rank_;
  data::Loader& loader_;
  std::vector<int64_t> shares_;
  ShareJudge judge_;
  int64_t ahead_ = 0;  // the most batches under way on any rank
  std::optional<ShareChange> ordered_;
};

}  // namespace weft::train
