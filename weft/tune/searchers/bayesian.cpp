// Bayesian optimisation: a Gaussian process of the losses, and the point with the largest logarithm of the expected
// improvement (Ament et al., "Unexpected improvements to expected improvement for Bayesian optimization", NeurIPS
// 2023). Noise: the best loss is the least mean of the process at the points tried (Gramacy and Lee, 2011). Trials that
// still run count with the loss that the process expects of them (Ginsbourger et al., "Kriging believer", 2010).
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/tune/searchers/entries.h"
#include "weft/tune/searchers/gaussian_process.h"
#include "weft/tune/searchers/minimize.h"
#include "weft/tune/searchers/normal.h"
#include "weft/tune/searchers/observations.h"
#include "weft/tune/space/random.h"

namespace weft::tune {

double log_improvement(double z) {
  if (z > -1) return std::log(normal_density(z) + z * normal_probability(z));
  const double t = -z, square = 1 / (t * t);
  // 1 - t * (tail / density), which cancels far out: there its series.
  const double share = t < 25 ? 1 - t * normal_probability(z) / normal_density(z)
                              : square * (1 - 3 * square * (1 - 5 * square * (1 - 7 * square * (1 - 9 * square))));
  return log_normal_density(z) + std::log(share);
}

namespace {

constexpr size_t kModelled = 400;  // points of the process
constexpr int kSpread = 512, kNear = 128, kStarts = 4;

/// The logarithm of the expected improvement over a space.
class Acquisition {
 public:
  Acquisition(const SearchState& state, Observed observed) : space_(state.space) {
    const std::vector<bool> is_choice = choices_of(space_);
    keep_at_most(observed, kModelled);
    const KernelParameters parameters = fitted(observed, is_choice);
    std::vector<double> values = standardised(observed.losses);
    process_ = std::make_unique<GaussianProcess>(observed.points, values, is_choice, parameters);
    best_ = std::numeric_limits<double>::infinity();
    for (const Features& point : observed.points) best_ = std::min(best_, process_->predict(point).mean);
    if (observed.running.empty()) return;
    for (const Features& point : observed.running) values.push_back(process_->predict(point).mean);
    observed.points.insert(observed.points.end(), observed.running.begin(), observed.running.end());
    process_ = std::make_unique<GaussianProcess>(std::move(observed.points), std::move(values), is_choice, parameters);
  }

  double value(const Point& point) const {
    const Prediction p = process_->predict(features_of(space_, point));
    const double deviation = std::sqrt(p.variance);
    return log_improvement((best_ - p.mean) / deviation) + std::log(deviation);
  }

  /// The point after climbing along real numbers, the others as they are.
  Point climb(const Point& start) const {
    std::vector<size_t> free;
    for (size_t index = 0; index < space_.size(); ++index)
      if (start[index] && space_[index].kind == Dimension::Kind::real) free.push_back(index);
    if (free.empty()) return start;
    Features at = features_of(space_, start);
    // Unit coordinates as (1 - cos t) / 2, which has no ends.
    const SmoothFunction function = [&](const std::vector<double>& angles, std::vector<double>& gradient) {
      for (size_t place = 0; place < free.size(); ++place) at[free[place]] = (1 - std::cos(angles[place])) / 2;
      const Prediction p = process_->predict(at, /*with_gradient=*/true);
      const double deviation = std::sqrt(p.variance), z = (best_ - p.mean) / deviation, log = log_improvement(z);
      const double share = std::exp(log_normal_probability(-1e308, z) - log);
      for (size_t place = 0; place < free.size(); ++place) {
        const double of_deviation = p.variance_gradient[free[place]] / (2 * p.variance);  // over the deviation
        const double of_z = -p.mean_gradient[free[place]] / deviation - z * of_deviation;
        gradient[place] = -(share * of_z + of_deviation) * std::sin(angles[place]) / 2;
      }
      return -(log + std::log(deviation));
    };
    std::vector<double> angles;
    for (const size_t index : free) angles.push_back(std::acos(1 - 2 * std::clamp(at[index], 1e-4, 1 - 1e-4)));
    const Minimum found = minimize(function, angles, 30);
    Point point = start;
    for (size_t place = 0; place < free.size(); ++place)
      point[free[place]] = space_.from_unit(free[place], (1 - std::cos(found.at[place])) / 2);
    return point;
  }

 private:
  const Space& space_;
  std::unique_ptr<GaussianProcess> process_;
  double best_ = 0;
};

/// The point with one dimension changed; those that then are there for the first time get values by chance.
Point changed(const Space& space, const Point& point, size_t index, double coordinate, Random& random) {
  Point other = point;
  other[index] = coordinate;
  for (size_t later = 0; later < space.size(); ++later) {
    if (!space.is_active(other, later))
      other[later].reset();
    else if (!other[later])
      other[later] = space.from_unit(later, random.uniform());
  }
  return other;
}

/// One step away: a number moves by a normal distribution, a choice becomes another one.
Point neighbour(const Space& space, Point point, double deviation, Random& random) {
  for (size_t index = 0; index < space.size(); ++index) {
    if (!point[index] || random.uniform() < 0.3) continue;
    const bool is_choice = space[index].kind == Dimension::Kind::choice;
    if (is_choice && random.uniform() < 0.7) continue;
    const double unit =
        is_choice ? random.uniform() : space.to_unit(index, *point[index]) + deviation * random.normal();
    point = changed(space, point, index, space.from_unit(index, unit), random);
  }
  return point;
}

struct Scored {
  Point point;
  double score;
};

class BayesianSearcher : public Searcher {
 public:
  explicit BayesianSearcher(int64_t startup_trials) : startup_trials_(startup_trials) {}

  std::optional<Proposal> ask(const SearchState& state) const override {
    const Space& space = state.space;
    const auto number = static_cast<int64_t>(state.history.size());
    const auto finished = std::count_if(state.history.begin(), state.history.end(),
                                        [](const Trial& trial) { return trial.is_finished(); });
    if (finished < startup_trials_)
      return Proposal{space.from_unit(sobol_point(space.size(), static_cast<uint32_t>(number), state.seed))};
    const Acquisition acquisition(state, observe(state));
    Random random(state.seed, number);
    std::vector<Scored> scored = candidates(state, acquisition, random);
    for (size_t start = 0; start < std::min<size_t>(kStarts, scored.size()); ++start)
      refine(space, acquisition, scored[start], random);
    const auto best = std::max_element(scored.begin(), scored.end(),
                                       [](const Scored& a, const Scored& b) { return a.score < b.score; });
    return Proposal{best->point};
  }

 private:
  /// Points spread evenly, and some near the best trials; the best scores first.
  static std::vector<Scored> candidates(const SearchState& state, const Acquisition& acquisition, Random& random) {
    const Space& space = state.space;
    std::vector<Scored> scored;
    const auto seed = static_cast<int64_t>(mix(static_cast<uint64_t>(state.seed), state.history.size()) >> 1);
    for (int index = 0; index < kSpread; ++index)
      scored.push_back({space.from_unit(sobol_point(space.size(), static_cast<uint32_t>(index), seed)), 0});
    std::vector<const Trial*> best;
    for (const Trial& trial : state.history)
      if (trial.is_finished()) best.push_back(&trial);
    const size_t few = std::min<size_t>(4, best.size());
    std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(few), best.end(),
                      [](const Trial* a, const Trial* b) { return a->losses.front() < b->losses.front(); });
    for (int index = 0; index < kNear; ++index) {
      const double deviation = std::pow(10.0, -1 - 2 * random.uniform());
      scored.push_back({neighbour(space, best[static_cast<size_t>(index) % few]->point, deviation, random), 0});
    }
    std::erase_if(scored, [&](const Scored& one) { return is_known(state, one.point); });
    if (scored.empty()) scored.push_back({space.from_unit(sobol_point(space.size(), 0, seed)), 0});
    for (Scored& one : scored) one.score = acquisition.value(one.point);
    std::stable_sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
    return scored;
  }

  static bool is_known(const SearchState& state, const Point& point) {
    return std::any_of(state.history.begin(), state.history.end(),
                       [&](const Trial& trial) { return trial.point == point; });
  }

  /// Climbs along real numbers, and tries neighbours of integers and all choices, in turn.
  static void refine(const Space& space, const Acquisition& acquisition, Scored& scored, Random& random) {
    const auto try_point = [&](Point point) {
      const double score = acquisition.value(point);
      if (!(score > scored.score)) return false;
      scored = {std::move(point), score};
      return true;
    };
    for (int round = 0; round < 3; ++round) {
      bool is_better = try_point(acquisition.climb(scored.point));
      for (size_t index = 0; index < space.size(); ++index) {
        if (!scored.point[index] || space.count(index) < 2) continue;
        const Dimension& d = space[index];
        const double now = *scored.point[index], step = static_cast<double>(d.step);
        if (d.kind == Dimension::Kind::choice) {
          for (size_t value = 0; value < d.choices.size(); ++value)
            if (static_cast<double>(value) != now)
              is_better |= try_point(changed(space, scored.point, index, static_cast<double>(value), random));
        } else {
          for (const double other : {now - step, now + step, now - 4 * step, now + 4 * step})
            if (other >= d.low && other <= d.high)
              is_better |= try_point(changed(space, scored.point, index, other, random));
        }
      }
      if (!is_better) return;
    }
  }

  int64_t startup_trials_;
};

}  // namespace

std::unique_ptr<Searcher> make_bayesian_searcher(const SearcherOptions& options) {
  return std::make_unique<BayesianSearcher>(std::max<int64_t>(2, options.startup_trials));
}

}  // namespace weft::tune
