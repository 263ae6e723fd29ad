#include "weft/predict/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "weft/predict/learning_curve.h"

namespace weft::predict {

namespace {

constexpr double kSpreadOfUnlike = 0.5;  // of recipes that have nothing in common but data and model

/// The 0.9 quantile of Student's distribution, by degrees of freedom; beyond the table that of the normal one.
double student80(size_t degrees) {
  constexpr std::array quantiles = {3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372};
  return degrees == 0 || degrees > quantiles.size() ? kNormal80 : quantiles[degrees - 1];
}

}  // namespace

std::optional<double> share_reached(const Curve& curve, double target, bool higher_is_better) {
  const double sign = higher_is_better ? 1 : -1;
  for (size_t at = 0; at < curve.values.size(); ++at)
    if (sign * curve.values[at] >= sign * target) return curve.shares[at];
  return std::nullopt;
}

std::optional<double> pace_after_a_tenth(const Curve& curve, double share) {
  constexpr double kTenth = 0.1;
  const auto seconds_at = [&](double wanted) {
    double share_before = 0, before = 0;
    for (size_t at = 0; at < curve.seconds.size(); ++at) {
      if (curve.shares[at] >= wanted)
        return before + (curve.seconds[at] - before) * (wanted - share_before) / (curve.shares[at] - share_before);
      share_before = curve.shares[at];
      before = curve.seconds[at];
    }
    return 0.0;
  };
  const double first = seconds_at(kTenth), all = seconds_at(share);
  if (share <= kTenth || !(first > 0) || !(all > 0)) return std::nullopt;
  return all / share / (first / kTenth);
}

std::optional<TimeToTarget> estimate_time(const std::vector<Curve>& curves, const Target& target,
                                          const Interval& run_seconds) {
  if (curves.empty()) return std::nullopt;
  TimeToTarget found{.metric = target.metric,
                     .target = target.value,
                     .share = {},
                     .seconds = {},
                     .runs = static_cast<int64_t>(curves.size())};
  double weights = 0, sum = 0, unlike = 0;
  double paces = kUsualRuns, pace_sum = 0, pace_squares = kUsualRuns * kUsualPaceSpread * kUsualPaceSpread;
  std::vector<std::pair<double, double>> logs;  // with its weight
  for (const Curve& curve : curves) {
    const std::optional<double> share = share_reached(curve, target.value, target.higher_is_better);
    if (!share) continue;
    ++found.reached;
    if (const auto pace = pace_after_a_tenth(curve, *share)) {
      ++paces;
      pace_sum += std::log(*pace);
      pace_squares += std::log(*pace) * std::log(*pace);
    }
    logs.emplace_back(std::log(std::max(*share, 1e-6)), curve.likeness);
    weights += curve.likeness;
    sum += curve.likeness * logs.back().first;
    unlike += curve.likeness * (1 - curve.likeness);
  }
  if (logs.empty()) return found;
  const double mean = sum / weights, count = static_cast<double>(logs.size());
  double squares = kUsualRuns * kUsualSpread * kUsualSpread;
  for (const auto& [value, weight] : logs) squares += weight / weights * count * (value - mean) * (value - mean);
  const double degrees = kUsualRuns + count - 1, quantile = student80(static_cast<size_t>(degrees));
  const double spread =
      std::hypot(std::sqrt(squares / degrees) * std::sqrt(1 + 1 / count), kSpreadOfUnlike * unlike / weights);
  found.share = interval_of(std::exp(mean), spread * quantile / kNormal80);
  found.share.high = std::max(found.share.expected, found.share.high);
  found.seconds = product(found.share, run_seconds);
  const double pace = pace_sum / paces, variance = pace_squares / paces - pace * pace;
  found.pace = std::exp(pace);
  found.pace_spread = std::sqrt(variance * (1 + 1 / paces)) * student80(static_cast<size_t>(paces - 1)) / kNormal80;
  return found;
}

std::optional<Interval> steps_by_own_curve(const std::vector<std::pair<int64_t, double>>& points, const Target& target,
                                           int64_t most_steps) {
  if (points.size() < kFewestCurvePoints) return std::nullopt;
  // Curves that are extrapolated fall.
  const double sign = target.higher_is_better ? -1 : 1, wanted = sign * target.value;
  std::vector<std::pair<int64_t, double>> falling;
  for (const auto& [step, value] : points) falling.emplace_back(step, sign * value);
  for (const auto& [step, value] : falling)
    if (value <= wanted)
      return Interval{static_cast<double>(step), static_cast<double>(step), static_cast<double>(step)};
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Interval steps{kNever, kNever, kNever};
  constexpr int kLooks = 100;
  const auto last = static_cast<double>(falling.back().first), most = static_cast<double>(most_steps);
  for (int look = 1; look <= kLooks && last < most; ++look) {
    const double at = last * std::pow(most / last, static_cast<double>(look) / kLooks);
    const std::optional<LossInterval> there =
        extrapolate(falling, std::max(falling.back().first + 1, int64_t{std::llround(at)}));
    if (!there) return std::nullopt;
    if (there->low <= wanted) steps.low = std::min(steps.low, at);
    if (there->median <= wanted) steps.expected = std::min(steps.expected, at);
    if (there->high <= wanted) steps.high = std::min(steps.high, at);
  }
  return steps;
}

}  // namespace weft::predict
