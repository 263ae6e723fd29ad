#include "weft/tune/searchers/parzen.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "weft/tune/searchers/normal.h"

namespace weft::tune {

namespace {

/// Of the kernels along one dimension: the distance to the further one of the two neighbours (Bergstra et al. 2011), at
/// least a share of the whole length that shrinks with the number of points.
std::vector<double> deviations_of(const std::vector<double>& units) {
  std::vector<size_t> order(units.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return units[a] < units[b]; });
  const double least = 1 / std::min(100.0, 2.0 + static_cast<double>(units.size()));
  std::vector<double> deviations(units.size());
  if (units.size() == 1) deviations[0] = std::max(units[0], 1 - units[0]);
  for (size_t place = 0; place < order.size() && order.size() > 1; ++place) {
    const double unit = units[order[place]];
    const double below = place > 0 ? unit - units[order[place - 1]] : 0;
    const double above = place + 1 < order.size() ? units[order[place + 1]] - unit : 0;
    deviations[order[place]] = std::clamp(std::max(below, above), least, 1.0);
  }
  return deviations;
}

/// What the density of a kernel is divided by: the probability between the ends and, of real numbers, the deviation.
double log_norm_of(const Dimension& d, double mean, double deviation) {
  const double mass = log_normal_probability((0 - mean) / deviation, (1 - mean) / deviation);
  return d.kind == Dimension::Kind::real ? mass + std::log(deviation) : mass;
}

}  // namespace

ParzenEstimator::ParzenEstimator(const Space& space, const std::vector<const Point*>& points,
                                 std::vector<double> weights)
    : space_(space), weights_(std::move(weights)) {
  weights_.push_back(1);
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= sum;
  parts_.resize(points.size() * space.size());
  for (size_t index = 0; index < space.size(); ++index) add_parts(points, index);
  for (size_t index = 0; index < space.size(); ++index) {
    const bool is_choice = space[index].kind == Dimension::Kind::choice;
    parts_.push_back({.is_wide = is_choice, .log_norm = is_choice ? 0 : log_norm_of(space[index], 0.5, 1)});
  }
}

/// Of the points, along one dimension.
void ParzenEstimator::add_parts(const std::vector<const Point*>& points, size_t index) {
  const bool is_choice = space_[index].kind == Dimension::Kind::choice;
  std::vector<double> units;
  for (const Point* point : points)
    if ((*point)[index] && !is_choice) units.push_back(space_.to_unit(index, *(*point)[index]));
  const std::vector<double> deviations = deviations_of(units);
  size_t next = 0;
  for (size_t kernel = 0; kernel < points.size(); ++kernel) {
    Part& part = parts_[kernel * space_.size() + index];
    const std::optional<double>& coordinate = (*points[kernel])[index];
    part.is_wide = !coordinate;
    if (!coordinate) continue;
    if (is_choice) {
      part.mean = *coordinate;
      continue;
    }
    part.mean = units[next];
    part.deviation = deviations[next++];
    part.log_norm = log_norm_of(space_[index], part.mean, part.deviation);
  }
}

/// One observation weighs as much as the prior, which is spread over all kernels (as in Optuna).
double ParzenEstimator::choice_share(const Part& part, size_t index, size_t value) const {
  const auto choices = static_cast<double>(space_[index].choices.size());
  if (part.is_wide) return 1 / choices;
  const double prior = 1 / static_cast<double>(weights_.size());
  return (prior + (static_cast<double>(value) == part.mean ? 1 : 0)) / (1 + prior * choices);
}

double ParzenEstimator::sample(const Part& part, size_t index, Random& random) const {
  if (space_[index].kind == Dimension::Kind::choice) {
    double left = random.uniform();
    const size_t last = space_[index].choices.size() - 1;
    for (size_t value = 0; value < last; ++value)
      if ((left -= choice_share(part, index, value)) < 0) return static_cast<double>(value);
    return static_cast<double>(last);
  }
  if (part.is_wide) return space_.from_unit(index, random.uniform());
  const double low = normal_probability((0 - part.mean) / part.deviation);
  const double high = normal_probability((1 - part.mean) / part.deviation);
  const double probability = std::clamp(low + random.uniform() * (high - low), 1e-300, 1 - 1e-16);
  return space_.from_unit(index, part.mean + part.deviation * normal_quantile(probability));
}

Point ParzenEstimator::sample(Random& random) const {
  double left = random.uniform();
  size_t kernel = 0;
  while (kernel + 1 < weights_.size() && (left -= weights_[kernel]) >= 0) ++kernel;
  Point point(space_.size());
  for (size_t index = 0; index < space_.size(); ++index)
    if (space_.is_active(point, index)) point[index] = sample(part(kernel, index), index, random);
  return point;
}

/// Adds the logarithm of each kernel along one dimension.
void ParzenEstimator::add_log_densities(size_t index, double coordinate, std::vector<double>& logs) const {
  if (space_[index].kind == Dimension::Kind::real) {
    const double unit = space_.to_unit(index, coordinate);
    for (size_t kernel = 0; kernel < logs.size(); ++kernel) {
      const Part& along = part(kernel, index);
      logs[kernel] += along.is_wide ? 0 : log_normal_density((unit - along.mean) / along.deviation) - along.log_norm;
    }
    return;
  }
  std::vector<double>& known = discrete_[{index, coordinate}];
  if (known.empty()) known = discrete_log_densities(index, coordinate);
  for (size_t kernel = 0; kernel < logs.size(); ++kernel) logs[kernel] += known[kernel];
}

/// Of each kernel along a dimension of integers or choices.
std::vector<double> ParzenEstimator::discrete_log_densities(size_t index, double coordinate) const {
  std::vector<double> logs(weights_.size());
  const bool is_choice = space_[index].kind == Dimension::Kind::choice;
  const auto [low, high] = is_choice ? std::pair(0.0, 1.0) : space_.piece(index, coordinate);  // of rounded numbers
  for (size_t kernel = 0; kernel < logs.size(); ++kernel) {
    const Part& along = part(kernel, index);
    if (is_choice)
      logs[kernel] = std::log(choice_share(along, index, static_cast<size_t>(coordinate)));
    else if (along.is_wide)
      logs[kernel] = std::log(high - low);
    else
      logs[kernel] =
          log_normal_probability((low - along.mean) / along.deviation, (high - along.mean) / along.deviation) -
          along.log_norm;
  }
  return logs;
}

double ParzenEstimator::log_density(const Point& point) const {
  std::vector<double> logs(weights_.size());
  for (size_t kernel = 0; kernel < logs.size(); ++kernel) logs[kernel] = std::log(weights_[kernel]);
  for (size_t index = 0; index < space_.size(); ++index)
    if (point[index]) add_log_densities(index, *point[index], logs);
  const double most = *std::max_element(logs.begin(), logs.end());
  if (!std::isfinite(most)) return most;
  double sum = 0;
  for (const double value : logs) sum += std::exp(value - most);
  return most + std::log(sum);
}

}  // namespace weft::tune
