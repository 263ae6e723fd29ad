#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "weft/plot/figure.h"

namespace weft::plot {

namespace {

/// The 1, 2, 5 or 10 times a power of ten next to `range`.
double nice_number(double range) {
  const double power = std::pow(10.0, std::floor(std::log10(range)));
  const double fraction = range / power;
  return power * (fraction < 1.5 ? 1 : fraction < 3 ? 2 : fraction < 7 ? 5 : 10);
}

}  // namespace

Axis make_axis(double low, double high, int marks, double least_step) {
  // One value, or none; or several that no label could tell apart.
  const double largest = std::max(std::abs(low), std::abs(high)), least = std::max(1e-300, 1e-9 * largest);
  if (!(high - low > least)) {
    const double half = largest < 1e-300 ? 1 : largest * 0.1;
    high = low + half;
    low -= half;
  }
  Axis axis;
  axis.step = std::max(least_step, nice_number((high - low) / std::max(1, marks - 1)));
  axis.low = std::floor(low / axis.step + 1e-9) * axis.step;
  axis.high = std::ceil(high / axis.step - 1e-9) * axis.step;
  axis.decimals = std::max(0, static_cast<int>(-std::floor(std::log10(axis.step) + 1e-9)));
  return axis;
}

std::vector<double> marks_of(const Axis& axis) {
  std::vector<double> marks;
  const double steps = std::round((axis.high - axis.low) / axis.step);
  // Counted, not added up: a mark plus a step may be the mark again.
  for (int count = 0; count <= std::min(steps, 100.0); ++count) marks.push_back(axis.low + count * axis.step);
  return marks;
}

std::string label_of(const Axis& axis, double mark) {
  if (std::abs(mark) < axis.step * 1e-6) mark = 0;  // not "-0.0"
  if (axis.decimals > 5 || std::abs(mark) >= 1e7) return fmt::format("{:.3g}", mark);
  return fmt::format("{:.{}f}", mark, axis.decimals);
}

std::string percent_label_of(const Axis& axis, double mark) {
  if (std::abs(mark) < axis.step * 1e-6) mark = 0;
  return fmt::format("{:.{}f} %", 100 * mark, std::max(0, axis.decimals - 2));
}

std::vector<double> smooth(const std::vector<double>& values, double weight) {
  std::vector<double> result;
  result.reserve(values.size());
  double average = 0, total_weight = 0;
  for (const double value : values) {
    if (std::isfinite(value)) {
      average = weight * average + (1 - weight) * value;
      total_weight = weight * total_weight + (1 - weight);
    }
    result.push_back(total_weight > 0 ? average / total_weight : value);
  }
  return result;
}

}  // namespace weft::plot
