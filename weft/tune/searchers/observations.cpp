#include "weft/tune/searchers/observations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace weft::tune {

namespace {
constexpr size_t kFitted = 100;  // points by which lengths and noise are fitted
}

std::vector<double> standardised(std::vector<double> losses) {
  std::vector<double> sorted = losses;
  std::sort(sorted.begin(), sorted.end());
  const double middle = sorted[sorted.size() / 2], best = sorted.front();
  const double most = middle + 3 * (middle - best);  // a run that diverged is bad, however large its loss
  double sum = 0, squares = 0;
  for (double& loss : losses) sum += loss = std::min(loss, most);
  const double mean = sum / static_cast<double>(losses.size());
  for (double& loss : losses) squares += (loss - mean) * (loss - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(losses.size()));
  for (double& loss : losses) loss = deviation > 0 ? (loss - mean) / deviation : 0;
  return losses;
}

Observed observe(const SearchState& state) {
  std::vector<double> resources;
  for (const Trial& trial : state.history)
    if (trial.is_finished()) resources.push_back(trial.resource);
  std::sort(resources.rbegin(), resources.rend());
  const size_t enough = std::min(resources.size(), state.space.size() + 2);
  const double least = resources[enough - 1];
  Observed observed;
  double worst = -std::numeric_limits<double>::infinity();
  for (const Trial& trial : state.history) {
    if (trial.state == Trial::State::running) observed.running.push_back(features_of(state.space, trial.point));
    if (!trial.is_finished() || trial.resource < least) continue;
    observed.points.push_back(features_of(state.space, trial.point));
    observed.losses.push_back(trial.losses.front());
    worst = std::max(worst, trial.losses.front());
  }
  for (const Trial& trial : state.history) {
    if (trial.state != Trial::State::failed) continue;
    observed.points.push_back(features_of(state.space, trial.point));
    observed.losses.push_back(worst);
  }
  return observed;
}

void keep_at_most(Observed& observed, size_t count) {
  if (observed.points.size() <= count) return;
  std::vector<size_t> order(observed.points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return observed.losses[a] < observed.losses[b]; });
  std::vector<bool> is_kept(order.size(), false);
  size_t kept = 0;
  for (size_t place = 0; place < count / 2; ++place, ++kept) is_kept[order[place]] = true;
  for (size_t index = order.size(); index-- > 0 && kept < count;)
    if (!is_kept[index]) {
      is_kept[index] = true;
      ++kept;
    }
  Observed rest{.points = {}, .losses = {}, .running = std::move(observed.running)};
  for (size_t index = 0; index < order.size(); ++index) {
    if (!is_kept[index]) continue;
    rest.points.push_back(std::move(observed.points[index]));
    rest.losses.push_back(observed.losses[index]);
  }
  observed = std::move(rest);
}

KernelParameters fitted(const Observed& observed, const std::vector<bool>& is_choice) {
  Observed some = observed;
  keep_at_most(some, kFitted);
  return GaussianProcess::fit(some.points, standardised(some.losses), is_choice);
}

}  // namespace weft::tune
