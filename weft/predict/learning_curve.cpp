#include "weft/predict/learning_curve.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace weft::predict {

namespace {

constexpr double kSmallestRate = 0.05, kLargestRate = 3;
constexpr int kRates = 24;            // of each family
constexpr double kForgetting = 0.97;  // weight of a point over that of the next: the end of a curve counts more
constexpr double kLeastNoise = 1e-3;  // of the curve's own range: no curve is smoother
constexpr double kInsideShare = 0.8;  // of the interval

/// A loss at a time, by one of the curves: normal.
struct Belief {
  double log_weight = 0, mean = 0, deviation = 0;
};

/// Points of one curve in the coordinates in which it is a line: loss = a + b x.
struct Line {
  double weights = 0, x = 0, y = 0, xx = 0, xy = 0;  // sums
  void add(double weight, double at, double loss) {
    weights += weight;
    x += weight * at;
    y += weight * loss;
    xx += weight * at * at;
    xy += weight * at * loss;
  }
};

class Curves {
 public:
  Curves(const std::vector<std::pair<int64_t, double>>& curve, int64_t at) : curve_(curve), at_(at) {
    double low = curve.front().second, high = low;
    for (const auto& [when, loss] : curve) {
      low = std::min(low, loss);
      high = std::max(high, loss);
    }
    least_noise_ = std::max(kLeastNoise * (high - low), 1e-12);
  }

  std::vector<Belief> beliefs() const {
    std::vector<Belief> found;
    for (int step = 0; step < kRates; ++step) {
      const double rate =
          kSmallestRate * std::pow(kLargestRate / kSmallestRate, static_cast<double>(step) / (kRates - 1));
      found.push_back(fitted([&](double when) { return std::pow(when, -rate); }));
      const double last = static_cast<double>(curve_.back().first);
      found.push_back(fitted([&](double when) { return std::exp(-rate * when * 4 / last); }));
    }
    return found;
  }

 private:
  Belief fitted(const std::function<double(double)>& shape) const {
    Line line;
    double weight = 1;
    for (auto point = curve_.rbegin(); point != curve_.rend(); ++point, weight *= kForgetting)
      line.add(weight, shape(static_cast<double>(point->first)), point->second);
    const double spread = line.xx - line.x * line.x / line.weights;
    // Curves of losses fall: one that would rise levels off at once.
    const double slope = spread > 0 ? std::max(0.0, (line.xy - line.x * line.y / line.weights) / spread) : 0;
    const double level = (line.y - slope * line.x) / line.weights;
    double errors = 0;
    weight = 1;
    for (auto point = curve_.rbegin(); point != curve_.rend(); ++point, weight *= kForgetting) {
      const double error = point->second - level - slope * shape(static_cast<double>(point->first));
      errors += weight * error * error;
    }
    const double freedom = std::max(1.0, line.weights - 3);
    const double noise = std::max(std::sqrt(errors / freedom), least_noise_);
    const double there = shape(static_cast<double>(at_)), away = there - line.x / line.weights;
    const double unsure = 1 / line.weights + (spread > 0 ? away * away / spread : 0);
    return {.log_weight = -line.weights * std::log(noise),
            .mean = level + slope * there,
            .deviation = noise * std::sqrt(1 + unsure)};
  }

  const std::vector<std::pair<int64_t, double>>& curve_;
  const int64_t at_;
  double least_noise_ = 0;
};

double normal_below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

/// The loss below which the mixture has this share.
double quantile(const std::vector<Belief>& beliefs, double share) {
  double most = beliefs.front().log_weight, low = beliefs.front().mean, high = low;
  for (const Belief& belief : beliefs) {
    most = std::max(most, belief.log_weight);
    low = std::min(low, belief.mean - 10 * belief.deviation);
    high = std::max(high, belief.mean + 10 * belief.deviation);
  }
  for (int step = 0; step < 80; ++step) {
    const double middle = (low + high) / 2;
    double below = 0, all = 0;
    for (const Belief& belief : beliefs) {
      const double weight = std::exp(belief.log_weight - most);
      all += weight;
      below += weight * normal_below((middle - belief.mean) / belief.deviation);
    }
    (below < share * all ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

std::optional<LossInterval> extrapolate(const std::vector<std::pair<int64_t, double>>& curve, int64_t at) {
  if (curve.size() < kFewestCurvePoints || at <= curve.back().first) return std::nullopt;
  for (const auto& [when, loss] : curve)
    if (!std::isfinite(loss) || when <= 0) return std::nullopt;
  const std::vector<Belief> beliefs = Curves(curve, at).beliefs();
  return LossInterval{quantile(beliefs, (1 - kInsideShare) / 2), quantile(beliefs, 0.5),
                      quantile(beliefs, (1 + kInsideShare) / 2)};
}

}  // namespace weft::predict
