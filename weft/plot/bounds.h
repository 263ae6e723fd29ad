// The smallest rectangle around the points of a panel.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/plot/figure.h"

namespace weft::plot {

struct Bounds {
  double left = std::numeric_limits<double>::infinity(), right = -left;
  double bottom = left, top = -left;
  bool empty() const { return left > right; }
};

inline bool is_point(const Series& series, size_t index) {
  return std::isfinite(series.x[index]) && std::isfinite(series.y[index]);
}

inline Bounds bounds_of(const Panel& panel) {
  Bounds bounds;
  for (const Series& series : panel.series)
    for (size_t index = 0; index < series.x.size(); ++index) {
      if (!is_point(series, index)) continue;
      bounds.left = std::min(bounds.left, series.x[index]);
      bounds.right = std::max(bounds.right, series.x[index]);
      bounds.bottom = std::min(bounds.bottom, series.y[index]);
      bounds.top = std::max(bounds.top, series.y[index]);
    }
  return bounds;
}

}  // namespace weft::plot
