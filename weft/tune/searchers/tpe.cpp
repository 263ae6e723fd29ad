// Tree-structured Parzen estimator: Bergstra, Bardenet, Bengio and Kegl, "Algorithms for hyper-parameter optimization",
// NeurIPS 2011; over all dimensions together as in BOHB (Falkner, Klein and Hutter, ICML 2018) and in Optuna, whose
// numbers are taken where nothing else is said. Trials that still run count as poor ones, so
// that others look elsewhere.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/tune/searchers/entries.h"
#include "weft/tune/searchers/parzen.h"

namespace weft::tune {

namespace {

constexpr int kCandidates = 24;
constexpr int kExchanges =
    24;  // then, of one dimension of the best candidate for that of another: it helps with many dimensions

/// How many of so many trials are good ones.
size_t good_count(size_t trials) {
  return std::min<size_t>(25, static_cast<size_t>(std::ceil(0.1 * static_cast<double>(trials))));
}

/// The newest 25 count in full, older ones less, down to almost nothing.
std::vector<double> weights_by_age(size_t count) {
  constexpr size_t kFull = 25;
  std::vector<double> weights(count, 1.0);
  if (count <= kFull) return weights;
  const size_t older = count - kFull;
  const double least = 1 / static_cast<double>(count);
  for (size_t index = 0; index < older; ++index)
    weights[index] =
        older == 1 ? least : least + (1 - least) * static_cast<double>(index) / static_cast<double>(older - 1);
  return weights;
}

/// Numbers of trials: the good ones, and all others, each in the order of the history.
struct Split {
  std::vector<size_t> good, others;
};

/// Trials that got further come first: schedulers promote the better ones.
Split split_trials(const History& history) {
  std::vector<size_t> finished;
  Split split;
  for (size_t number = 0; number < history.size(); ++number)
    (history[number].is_finished() ? finished : split.others).push_back(number);
  std::stable_sort(finished.begin(), finished.end(), [&](size_t a, size_t b) {
    if (history[a].resource != history[b].resource) return history[a].resource > history[b].resource;
    return history[a].losses.front() < history[b].losses.front();
  });
  const size_t count = good_count(finished.size());
  split.good.assign(finished.begin(), finished.begin() + static_cast<std::ptrdiff_t>(count));
  split.others.insert(split.others.end(), finished.begin() + static_cast<std::ptrdiff_t>(count), finished.end());
  std::sort(split.good.begin(), split.good.end());
  std::sort(split.others.begin(), split.others.end());
  return split;
}

ParzenEstimator density_of(const Space& space, const History& history, const std::vector<size_t>& numbers) {
  std::vector<const Point*> points;
  for (const size_t number : numbers) points.push_back(&history[number].point);
  return {space, points, weights_by_age(points.size())};
}

/// The point with one dimension of another; dimensions that then are there for the first time come from the other, too.
Point exchanged(const Space& space, Point point, const Point& other, size_t index) {
  if (!point[index] || !other[index]) return point;
  point[index] = other[index];
  for (size_t later = index + 1; later < space.size(); ++later) {
    if (!space.is_active(point, later))
      point[later].reset();
    else if (!point[later])
      point[later] = other[later] ? other[later] : space.from_unit(later, 0.5);
  }
  return point;
}

class TpeSearcher : public Searcher {
 public:
  explicit TpeSearcher(int64_t startup_trials) : startup_trials_(startup_trials) {}

  std::optional<Proposal> ask(const SearchState& state) const override {
    const auto number = static_cast<int64_t>(state.history.size());
    const auto finished = std::count_if(state.history.begin(), state.history.end(),
                                        [](const Trial& trial) { return trial.is_finished(); });
    if (finished < startup_trials_)
      return Proposal{
          state.space.from_unit(sobol_point(state.space.size(), static_cast<uint32_t>(number), state.seed))};
    const Split split = split_trials(state.history);
    const ParzenEstimator good = density_of(state.space, state.history, split.good);
    const ParzenEstimator others = density_of(state.space, state.history, split.others);
    Random random(state.seed, number);
    const auto score_of = [&](const Point& point) { return good.log_density(point) - others.log_density(point); };
    Proposal best{good.sample(random)};
    double best_score = score_of(best.point);
    const auto consider = [&](Point point) {
      const double score = score_of(point);
      if (!(score > best_score)) return;
      best_score = score;
      best.point = std::move(point);
    };
    for (int candidate = 1; candidate < kCandidates; ++candidate) consider(good.sample(random));
    for (int candidate = 0; candidate < kExchanges; ++candidate) {
      const Point other = good.sample(random);
      consider(exchanged(state.space, best.point, other, random.below(state.space.size())));
    }
    return best;
  }

 private:
  int64_t startup_trials_;
};

}  // namespace

std::unique_ptr<Searcher> make_tpe_searcher(const SearcherOptions& options) {
  return std::make_unique<TpeSearcher>(std::max<int64_t>(1, options.startup_trials));
}

}  // namespace weft::tune
