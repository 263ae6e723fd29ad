#include "weft/run/policies/range_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace weft::run {

namespace {

// Smoothing reaches over this share of the test, either way: a loss counts half as much at that distance.
constexpr double kReach = 0.06;
// The last steps do not decide: nothing behind them says whether their losses were chance.
constexpr double kEnd = 0.06;  // of all, and two at least
// Of a fall, over the noise of a step: less is no fall.
constexpr double kLeastFall = 0.01;

/// A Gaussian mean over neighbouring steps, which unlike a running mean does not lag behind the rate.
std::vector<double> smooth_both_ways(const std::vector<RatedLoss>& steps) {
  const auto count = static_cast<double>(steps.size());
  const double deviation = std::max(0.5, kReach * count) / std::sqrt(2 * std::log(2.0));
  std::vector<double> smoothed;
  for (size_t at = 0; at < steps.size(); ++at) {
    double sum = 0, weights = 0;
    for (size_t other = 0; other < steps.size(); ++other) {
      const double distance = (static_cast<double>(other) - static_cast<double>(at)) / deviation;
      const double weight = std::exp(-distance * distance / 2);
      sum += weight * steps[other].loss;
      weights += weight;
    }
    smoothed.push_back(sum / weights);
  }
  return smoothed;
}

double with_three_digits(double value) { return std::strtod(fmt::format("{:.3g}", value).c_str(), nullptr); }

}  // namespace

const char* const kRangeRule =
    "the geometric mean of the rate where the smoothed loss falls fastest and of the rate where it is lowest";

bool has_diverged(const std::vector<RatedLoss>& steps) {
  if (steps.size() < 2) return false;
  double best = steps.front().loss;
  for (const RatedLoss& step : steps) best = std::min(best, step.loss);
  const double first = steps.front().loss;
  return !(steps.back().loss <= first + std::max(first - best, std::abs(first) / 2));  // also where it is no number
}

RangeTest judge_range(std::vector<RatedLoss> steps) {
  std::erase_if(steps, [](const RatedLoss& step) { return !std::isfinite(step.loss); });
  RangeTest test{.steps = std::move(steps)};
  test.smoothed = smooth_both_ways(test.steps);
  const size_t end = std::max<size_t>(2, static_cast<size_t>(kEnd * static_cast<double>(test.steps.size())));
  if (test.steps.size() < end + 3) return test;
  const auto last = test.smoothed.end() - static_cast<std::ptrdiff_t>(end);
  const auto lowest = static_cast<size_t>(std::min_element(test.smoothed.begin(), last) - test.smoothed.begin());
  const double fall = test.smoothed.front() - test.smoothed[lowest];
  if (lowest == 0 || fall <= kLeastFall * std::abs(test.smoothed.front())) return test;
  size_t steepest = 1;
  for (size_t at = 1; at <= lowest; ++at)
    if (test.smoothed[at - 1] - test.smoothed[at] > test.smoothed[steepest - 1] - test.smoothed[steepest])
      steepest = at;
  test.steepest = test.steps[steepest].rate;
  test.lowest = test.steps[lowest].rate;
  test.chosen = with_three_digits(std::sqrt(*test.steepest * *test.lowest));
  return test;
}

}  // namespace weft::run
