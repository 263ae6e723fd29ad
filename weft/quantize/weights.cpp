#include "weft/quantize/weights.h"

#include <algorithm>
#include <cmath>

namespace weft::quantize {

namespace {

double squared_error(const float* weights, int64_t count, float scale, int bits) {
  double error = 0;
  for (int64_t at = 0; at < count; ++at) {
    const double difference =
        static_cast<double>(weights[at]) -
        static_cast<double>(nearest_integer(weights[at], scale, bits)) * static_cast<double>(scale);
    error += difference * difference;
  }
  return error;
}

float best_scale(const float* weights, int64_t count, float most, int bits) {
  constexpr int kCandidates = 80;
  const auto highest = static_cast<float>(highest_of_bits(bits));
  float best = most / highest;
  double least = squared_error(weights, count, best, bits);
  for (int candidate = kCandidates / 5; candidate < kCandidates; ++candidate) {
    const float scale = most * static_cast<float>(candidate) / kCandidates / highest;
    const double error = squared_error(weights, count, scale, bits);
    if (error >= least) continue;
    least = error;
    best = scale;
  }
  return best;
}

}  // namespace

Matrix IntegerMatrix::reals() const {
  Matrix result{rows, columns, std::vector<float>(integers.size())};
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const auto at = static_cast<size_t>(row * columns + column);
      result.numbers[at] = static_cast<float>(integers[at]) * scale_at(row, column);
    }
  return result;
}

int64_t highest_of_bits(int bits) { return (int64_t{1} << (bits - 1)) - 1; }

int8_t nearest_integer(float weight, float scale, int bits) {
  const auto highest = static_cast<float>(highest_of_bits(bits));
  // Of 2 bits the lowest has its use: -2, -1, 0, 1.
  const float lowest = bits == 2 ? -2 : -highest;
  return static_cast<int8_t>(std::clamp(std::nearbyint(weight / scale), lowest, highest));
}

IntegerMatrix scales_of(const Matrix& weights, int bits, int64_t group, bool per_row, bool searches) {
  IntegerMatrix result{weights.rows, weights.columns, std::max<int64_t>(1, std::min(group, weights.columns)), {}, {}};
  const auto most_of = [](const float* begin, int64_t count) {
    float most = 0;
    for (int64_t at = 0; at < count; ++at) most = std::max(most, std::fabs(begin[at]));
    return most;
  };
  const float all = most_of(weights.numbers.data(), static_cast<int64_t>(weights.numbers.size()));
  const auto highest = static_cast<float>(highest_of_bits(bits));
  for (int64_t row = 0; row < weights.rows; ++row)
    for (int64_t first = 0; first < weights.columns; first += result.group) {
      const int64_t count = std::min(result.group, weights.columns - first);
      const float* run = weights.row(row) + first;
      const float most = per_row ? most_of(run, count) : all;
      const float scale = most == 0 ? 1 : searches && per_row ? best_scale(run, count, most, bits) : most / highest;
      result.scales.push_back(scale);
    }
  result.integers.assign(weights.numbers.size(), 0);
  return result;
}

void round_to_nearest(IntegerMatrix& quantized, const Matrix& weights, int bits) {
  for (int64_t row = 0; row < weights.rows; ++row)
    for (int64_t column = 0; column < weights.columns; ++column)
      quantized.integers[static_cast<size_t>(row * weights.columns + column)] =
          nearest_integer(weights.row(row)[column], quantized.scale_at(row, column), bits);
}

}  // namespace weft::quantize
