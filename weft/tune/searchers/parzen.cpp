#include "weft/tune/searchers/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/tune/searchers/normal.h"

namespace weft::tune {

namespace {

/// Along each dimension, in units of its length, for many dimensions and points: Scott's exponent with the factor of
/// Optuna's multivariate estimator, and its bound from below ("magic clip").
double deviation_of(size_t points, size_t dimensions) {
  const double scott =
      0.2 * std::pow(std::max(1.0, static_cast<double>(points)), -1.0 / (static_cast<double>(dimensions) + 4));
  const double least = 1 / std::min(100.0, 2.0 + static_cast<double>(points));
  return std::clamp(scott, least, 1.0);
}

double log_of_ends(double mean, double deviation) {
  return log_normal_probability((0 - mean) / deviation, (1 - mean) / deviation);
}

}  // namespace

ParzenEstimator::ParzenEstimator(const Space& space, const std::vector<const Point*>& points,
                                 std::vector<double> weights)
    : space_(space), weights_(std::move(weights)) {
  weights_.push_back(1);
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= sum;
  const double deviation = deviation_of(points.size(), space.size());
  parts_.reserve(weights_.size() * space.size());
  for (const Point* point : points)
    for (size_t index = 0; index < space.size(); ++index) {
      const std::optional<double>& coordinate = (*point)[index];
      Part part{.is_wide = !coordinate, .deviation = deviation};
      const bool is_choice = space[index].kind == Dimension::Kind::choice;
      if (coordinate) part.mean = is_choice ? *coordinate : space.to_unit(index, *coordinate);
      if (coordinate && !is_choice) part.log_mass = log_of_ends(part.mean, deviation);
      parts_.push_back(part);
    }
  for (size_t index = 0; index < space.size(); ++index) {
    const bool is_choice = space[index].kind == Dimension::Kind::choice;
    parts_.push_back({.is_wide = is_choice, .log_mass = is_choice ? 0 : log_of_ends(0.5, 1)});
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

double ParzenEstimator::log_density(const Part& part, size_t index, double coordinate) const {
  const Dimension& d = space_[index];
  if (d.kind == Dimension::Kind::choice) return std::log(choice_share(part, index, static_cast<size_t>(coordinate)));
  if (d.kind == Dimension::Kind::real) {
    if (part.is_wide) return 0;
    const double z = (space_.to_unit(index, coordinate) - part.mean) / part.deviation;
    return log_normal_density(z) - std::log(part.deviation) - part.log_mass;
  }
  const auto [low, high] = space_.piece(index, coordinate);  // of numbers that are rounded to this integer
  if (part.is_wide) return std::log(high - low);
  return log_normal_probability((low - part.mean) / part.deviation, (high - part.mean) / part.deviation) -
         part.log_mass;
}

double ParzenEstimator::log_density(const Point& point) const {
  std::vector<double> logs(weights_.size());
  double most = -std::numeric_limits<double>::infinity();
  for (size_t kernel = 0; kernel < weights_.size(); ++kernel) {
    logs[kernel] = std::log(weights_[kernel]);
    for (size_t index = 0; index < space_.size(); ++index)
      if (point[index]) logs[kernel] += log_density(part(kernel, index), index, *point[index]);
    most = std::max(most, logs[kernel]);
  }
  if (!std::isfinite(most)) return most;
  double sum = 0;
  for (const double value : logs) sum += std::exp(value - most);
  return most + std::log(sum);
}

}  // namespace weft::tune
