// Given rates between given steps, as levels or as lines.
#include <algorithm>
#include <cmath>

#include "weft/step/schedules/schedule.h"

namespace weft::step {

double piecewise(double step, std::span<const double> boundaries, std::span<const double> factors, double factor,
                 double rate) {
  const auto passed = std::upper_bound(boundaries.begin(), boundaries.end(), step) - boundaries.begin();
  if (factors.empty()) return rate * std::pow(factor, static_cast<double>(passed));
  return rate * factors[static_cast<size_t>(passed)];
}

double piecewise_lines(double step, std::span<const double> boundaries, std::span<const double> factors, double rate) {
  const auto after = std::upper_bound(boundaries.begin(), boundaries.end(), step);
  if (after == boundaries.begin()) return rate * factors.front();
  if (after == boundaries.end()) return rate * factors.back();
  const auto index = static_cast<size_t>(after - boundaries.begin());
  const double progress = (step - boundaries[index - 1]) / (boundaries[index] - boundaries[index - 1]);
  return rate * (factors[index - 1] + (factors[index] - factors[index - 1]) * progress);
}

}  // namespace weft::step
