#include "weft/search/search.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "weft/base/error.h"

namespace weft::search {

using predict::Strategy;

namespace {

constexpr double kFarFaster = 0.8;  // an estimate over the best plan: worth one more plan

/// Of equally fast ones the simpler: fewer ranks that share layers, fewer stages, less that is shared, larger batches.
auto simplicity(const Strategy& of) {
  return std::tuple(of.tensor, of.pipeline, of.zero, of.accumulate, of.micro_batches, of.schedule);
}

/// Those that fit by their time, where plans decide those with plans first; then the others by the memory they want.
void sort(Found& found) {
  std::sort(found.ranked.begin(), found.ranked.end(), [&](const Ranked& a, const Ranked& b) {
    if (a.fits() != b.fits()) return a.fits();
    const bool by_plan = found.is_planned && a.fits();
    if (by_plan && a.planned.has_value() != b.planned.has_value()) return a.planned.has_value();
    const double own = a.fits() ? found.seconds_of(a) : a.estimate.least_bytes;
    const double other = b.fits() ? found.seconds_of(b) : b.estimate.least_bytes;
    return own != other ? own < other : simplicity(a.strategy) < simplicity(b.strategy);
  });
}

class Search {
 public:
  Search(const Candidates& candidates, const Evaluator& evaluator, const Limits& limits)
      : candidates_(candidates.strategies), evaluator_(evaluator), limits_(limits) {
    found_.refused = candidates.refused;
  }

  Found run() {
    bound_all();
    estimate_all();
    sort(found_);
    plan_first();
    sort(found_);
    if (!found_.ranked.empty() && found_.ranked.front().fits() && (!found_.is_planned || found_.ranked.front().planned))
      found_.chosen = 0;
    return std::move(found_);
  }

 private:
  struct Bounded {
    size_t candidate = 0;
    double seconds = 0;
  };

  void refuse(const std::string& why) {
    for (Refusal& known : found_.refused)
      if (known.why == why) {
        ++known.strategies;
        return;
      }
    found_.refused.push_back({why, 1});
  }

  void bound_all() {
    for (size_t at = 0; at < candidates_.size(); ++at) {
      try {
        bounds_.push_back({at, evaluator_.bound(candidates_[at])});
        ++found_.counts.candidates;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) throw;
        refuse(error.what());
      }
    }
    std::stable_sort(bounds_.begin(), bounds_.end(),
                     [](const Bounded& a, const Bounded& b) { return a.seconds < b.seconds; });
  }

  /// The most promising first; what cannot come near the best any more is left out.
  void estimate_all() {
    double best = kNever, bound = kNever;
    for (const Bounded& next : bounds_) {
      if (next.seconds > limits_.margin * best) {
        ++found_.counts.bounded;
        continue;
      }
      try {
        const Estimate estimate = evaluator_.estimate(candidates_[next.candidate]);
        ++found_.counts.estimated;
        found_.counts.points += estimate.points;
        found_.ranked.push_back({candidates_[next.candidate], estimate});
        if (!estimate.fits) continue;
        best = std::min(best, estimate.seconds);
        bound = std::min(bound, estimate.bound_seconds);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) throw;
        refuse(error.what());
      }
    }
    found_.best_seconds = best < kNever ? best : 0;
    found_.bound_seconds = bound < kNever ? bound : 0;
  }

  /// The fastest by estimates, and the fastest of each mesh; more of them until one fits that others are not estimated
  /// to beat by far. Plans that would be too large are left out, unless it is that of the fastest: then plans of others
  /// do not decide.
  void plan_first() {
    if (!evaluator_.plan) return;
    std::vector<size_t> order = order_of_plans();
    double best = kNever;  // of those that fit
    found_.is_planned = !order.empty() && limits_.most_plans > 0;
    for (const size_t at : order) {
      const auto plans = static_cast<size_t>(found_.counts.plans);
      Ranked& one = found_.ranked[at];
      if (plans >= limits_.most_plans) break;
      if (plans >= limits_.plans && one.estimate.seconds > kFarFaster * best) break;
      one.planned = evaluator_.plan(one.strategy);
      if (!one.planned) {
        if (at == 0) found_.is_planned = false;
        continue;
      }
      ++found_.counts.plans;
      if (!one.planned->fits) continue;
      best = std::min(best, one.planned->seconds);
      one.strategy = one.planned->strategy;
    }
  }

  std::vector<size_t> order_of_plans() const {
    std::vector<size_t> first_of_meshes, others;
    std::set<std::pair<int64_t, int64_t>> meshes;
    for (size_t at = 0; at < found_.ranked.size(); ++at) {
      const Strategy& strategy = found_.ranked[at].strategy;
      const bool is_first = meshes.emplace(strategy.tensor, strategy.pipeline).second;
      (is_first && first_of_meshes.size() < limits_.plans / 2 ? first_of_meshes : others).push_back(at);
    }
    first_of_meshes.insert(first_of_meshes.end(), others.begin(), others.end());
    return first_of_meshes;
  }

  const std::vector<Strategy>& candidates_;
  const Evaluator& evaluator_;
  const Limits limits_;
  std::vector<Bounded> bounds_;
  Found found_;
};

}  // namespace

Found search(const Candidates& candidates, const Evaluator& evaluator, const Limits& limits) {
  return Search(candidates, evaluator, limits).run();
}

}  // namespace weft::search
