#include "weft/quantize/equalization.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"

namespace weft::quantize {

std::vector<float> equalizing_scales(const std::vector<float>& first, const std::vector<float>& second) {
  check(first.size() == second.size(), "both layers have the channels between them");
  std::vector<float> scales;
  for (size_t channel = 0; channel < first.size(); ++channel) {
    // s = r1 / sqrt(r1 r2): the first layer's range over the common one.
    const float scale = std::sqrt(first[channel] / second[channel]);
    scales.push_back(first[channel] > 0 && second[channel] > 0 && std::isfinite(scale) ? scale : 1);
  }
  return scales;
}

std::vector<float> row_ranges(const Matrix& weights) {
  std::vector<float> ranges;
  for (int64_t row = 0; row < weights.rows; ++row) {
    float most = 0;
    for (int64_t column = 0; column < weights.columns; ++column)
      most = std::max(most, std::fabs(weights.row(row)[column]));
    ranges.push_back(most);
  }
  return ranges;
}

}  // namespace weft::quantize
