#include "weft/plot/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::plot {

namespace {

/// One value in so many may lie outside, and at least one. Below this number a range that all but one value set is
/// hardly known, so that only what lies much further out is an outlier.
constexpr size_t kValuesPerOutlier = 20;
/// How many heights of the rest away from it.
constexpr double kFarOfMany = 5, kFarOfFew = 20;

/// The largest value to show; `sorted` has three values or more. The smallest one is the negative of that of the
/// negative values.
double upper_end(const std::vector<double>& sorted) {
  const size_t count = sorted.size(), outside = std::max<size_t>(1, count / kValuesPerOutlier);
  const bool is_many = count >= kValuesPerOutlier;
  const double low = sorted[is_many ? outside : 0], high = sorted[count - 1 - outside];
  const double height = std::max(high - low, 0.05 * std::max(std::abs(low), std::abs(high)));
  const double far = high + height * (is_many ? kFarOfMany : kFarOfFew);
  if (!(sorted.back() > far)) return sorted.back();
  return *std::prev(std::upper_bound(sorted.begin(), sorted.end(), high + height));
}

}  // namespace

bool is_point(const Series& series, size_t index) {
  return std::isfinite(series.x[index]) && std::isfinite(series.y[index]);
}

std::pair<double, double> usual_range(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return {0, 0};
  std::sort(values.begin(), values.end());
  if (values.size() < 3) return {values.front(), values.back()};
  const double high = upper_end(values);
  std::reverse(values.begin(), values.end());
  for (double& value : values) value = -value;
  return {-upper_end(values), high};
}

View view_of(const Panel& panel, int x_marks, int y_marks) {
  View view;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double left = kNone, right = -kNone, low = kNone, high = -kNone, least = kNone, most = -kNone;
  for (const Series& series : panel.series) {
    std::vector<double> values;
    for (size_t index = 0; index < series.x.size(); ++index) {
      if (!is_point(series, index)) continue;
      left = std::min(left, series.x[index]);
      right = std::max(right, series.x[index]);
      least = std::min(least, series.y[index]);
      most = std::max(most, series.y[index]);
      values.push_back(series.y[index]);
    }
    if (values.empty()) continue;
    // Of each curve by itself: one that lies high as a whole has no outliers.
    const auto [lower, upper] = usual_range(std::move(values));
    low = std::min(low, lower);
    high = std::max(high, upper);
  }
  if (left > right) return view;
  view.empty = false;
  view.x = make_axis(left, right, x_marks, panel.whole_x ? 1 : 0);
  // All right, or all wrong: no share lies beyond.
  const bool is_end = panel.is_share && low == high && (low == 0 || low == 1);
  view.y = is_end ? make_axis(low == 0 ? 0 : 0.9, low == 0 ? 0.1 : 1, y_marks) : make_axis(low, high, y_marks);
  if (most > view.y.high) view.above = most;
  if (least < view.y.low) view.below = least;
  return view;
}

std::string y_label(const Panel& panel, const Axis& axis, double mark) {
  return panel.is_share ? percent_label_of(axis, mark) : label_of(axis, mark);
}

std::string value_label(const Panel& panel, double value) {
  return panel.is_share ? fmt::format("{:.4g} %", 100 * value) : fmt::format("{:.3g}", value);
}

std::vector<const Series*> legend_of(const std::vector<Panel>& panels) {
  std::vector<const Series*> entries;
  for (const Panel& panel : panels)
    for (const Series& series : panel.series) {
      const bool is_known = std::any_of(entries.begin(), entries.end(), [&](const Series* entry) {
        return entry->name == series.name && entry->group == series.group && entry->line == series.line;
      });
      if (!series.faint && !is_known) entries.push_back(&series);
    }
  return entries;
}

}  // namespace weft::plot
