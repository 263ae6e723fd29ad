// What a prediction says of a number: never the number alone.
#pragma once

#include <cmath>

namespace weft::predict {

/// The value that is expected, and the ends between which it lies in 80 of 100 cases.
struct Interval {
  double low = 0, expected = 0, high = 0;

  Interval times(double factor) const { return {factor * low, factor * expected, factor * high}; }
  Interval plus(double more) const { return {low + more, expected + more, high + more}; }
  bool holds(double value) const { return low <= value && value <= high; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

inline constexpr double kNormal80 = 1.2815515655446004;  // the 0.9 quantile of the standard normal distribution

/// Of a number whose logarithm is normally distributed around that of `expected`, with this standard deviation.
inline Interval interval_of(double expected, double spread) {
  const double factor = std::exp(kNormal80 * spread);
  return {expected / factor, expected, expected * factor};
}
/// Of a product of independent factors.
inline Interval product(const Interval& a, const Interval& b) {
  if (a.expected <= 0 || b.expected <= 0) return {};
  const auto spread = [](const Interval& of) { return std::log(of.high / of.low) / (2 * kNormal80); };
  return interval_of(a.expected * b.expected, std::hypot(spread(a), spread(b)));
}

}  // namespace weft::predict
