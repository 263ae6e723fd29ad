#include "weft/tune/searchers/normal.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace weft::tune {

double normal_density(double z) { return std::exp(log_normal_density(z)); }

double log_normal_density(double z) { return -0.5 * z * z - 0.91893853320467274178; }

double normal_probability(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

namespace {

/// log of the probability of being below z; far below, by the asymptotic series of erfc.
double log_below(double z) {
  if (z > -20) return std::log(normal_probability(z));
  const double square = 1 / (z * z);
  return log_normal_density(z) - std::log(-z) + std::log1p(-square * (1 - 3 * square * (1 - 5 * square)));
}

}  // namespace

double log_normal_probability(double low, double high) {
  if (low > 0) {  // the tail on the other side has the digits
    std::swap(low, high);
    low = -low;
    high = -high;
  }
  const double below = normal_probability(high), between = below - normal_probability(low);
  if (high > -20 && between > 1e-6 * below) return std::log(between);  // the difference has enough digits
  const double log_high = log_below(high);
  if (!(low > -1e300)) return log_high;
  const double difference = log_below(low) - log_high;
  return log_high + std::log(-std::expm1(std::fmin(difference, -1e-300)));
}

double normal_quantile(double probability) {
  // Acklam's rational approximation (relative error 1e-9), and one step of Halley's method.
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
                          -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00};
  const double p = probability, tail = std::fmin(p, 1 - p);
  double z = 0;
  if (tail < 0.02425) {
    const double q = std::sqrt(-2 * std::log(tail));
    z = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
        ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    if (p > 0.5) z = -z;
  } else {
    const double q = p - 0.5, r = q * q;
    z = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
        (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
  }
  const double error = (normal_probability(z) - p) / normal_density(z);
  return z - error / (1 + z * error / 2);
}

}  // namespace weft::tune
