// What the inputs of a layer are like: their second moments, by which rounding of weights weighs its errors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::quantize {

/// The mean of x x' over all samples x: a symmetric matrix [size][size].
struct SecondMoments {
  int64_t size = 0, samples = 0;
  std::vector<double> sums;   // the lower half is kept; of x x'
  std::vector<double> means;  // sums of x

  /// Without the matrix, whose size is that of the inputs squared, only means are kept.
  explicit SecondMoments(int64_t inputs, bool keeps_matrix = true);
  bool has_matrix() const { return !sums.empty(); }
  void add(std::span<const float> sample);
  double at(int64_t row, int64_t column) const {
    const int64_t high = row > column ? row : column, low = row > column ? column : row;
    return samples == 0 ? 0 : sums[static_cast<size_t>(high * size + low)] / static_cast<double>(samples);
  }
  double mean(int64_t index) const {
    return samples == 0 ? 0 : means[static_cast<size_t>(index)] / static_cast<double>(samples);
  }
};

}  // namespace weft::quantize
