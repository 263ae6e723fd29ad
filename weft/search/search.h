// Chooses the strategy whose step takes the least time under a limit on the memory of each rank: branch and bound over
// all candidates by estimates, then real plans of those that come first. Every limit is a count and none a time, so
// that the same question has the same answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/predict/strategy.h"
#include "weft/search/candidates.h"
#include "weft/search/estimate.h"

namespace weft::search {

/// What the plan of a strategy comes to.
struct Planned {
  bool fits = false;
  double seconds = 0, memory_bytes = 0;
  std::string why = {};             // it does not
  predict::Strategy strategy = {};  // with what the plan needed: a limit by which it computes twice
};

/// What is asked of strategies. `estimate` and `bound` may throw Error(usage): the strategy is then none.
struct Evaluator {
  std::function<double(const predict::Strategy&)> bound;  // no estimate is less
  std::function<Estimate(const predict::Strategy&)> estimate;
  /// Null: nothing is planned. Nothing of a strategy whose plan would be too large.
  std::function<std::optional<Planned>(const predict::Strategy&)> plan = {};
};

struct Limits {
  size_t plans = 8;        // of those that are estimated to be the fastest
  size_t most_plans = 24;  // where none of them fits, or others are estimated to be far faster
  double margin = 1.3;     // of the best estimate: what may take longer is not looked at further
};

struct Ranked {
  predict::Strategy strategy;
  Estimate estimate;
  std::optional<Planned> planned = {};

  bool fits() const { return planned ? planned->fits : estimate.fits; }
  double memory_bytes() const {
    return planned && planned->memory_bytes > 0 ? planned->memory_bytes
           : estimate.fits                      ? estimate.memory_bytes
                                                : estimate.least_bytes;
  }
};

struct Counts {
  int64_t candidates = 0;  // that the run would take
  int64_t bounded = 0;     // left out by their bound
  int64_t estimated = 0;
  int64_t points = 0;  // of the dynamic programming
  int64_t plans = 0;
};

struct Found {
  std::vector<Ranked> ranked;    // those that fit, the fastest first, then those that do not, by the memory they want
  std::optional<size_t> chosen;  // of them; none: nothing fits
  /// By the times of plans; else by estimates, since the plan of the fastest by estimates would be too large.
  bool is_planned = false;
  std::vector<Refusal> refused;
  Counts counts;
  /// Of estimates: the fastest that fits, and what no strategy takes less than.
  double best_seconds = 0, bound_seconds = 0;
  double seconds_of(const Ranked& one) const {
    return is_planned && one.planned && one.planned->fits ? one.planned->seconds : one.estimate.seconds;
  }
  double gap() const { return bound_seconds > 0 ? best_seconds / bound_seconds - 1 : 0; }
};

Found search(const Candidates& candidates, const Evaluator& evaluator, const Limits& limits = {});

}  // namespace weft::search
