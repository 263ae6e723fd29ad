#include "weft/quantize/group_weights.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"

namespace weft::quantize {

namespace {

/// The upper triangle U with U' U = H^-1, row-major: by Cholesky of the inverse, as the paper's step 2.
std::vector<double> inverse_factor(const SecondMoments& inputs) {
  const int64_t size = inputs.size;
  const auto at = [size](int64_t row, int64_t column) { return static_cast<size_t>(row * size + column); };
  double mean = 0;
  for (int64_t i = 0; i < size; ++i) mean += inputs.at(i, i) / static_cast<double>(size);
  const double damping = std::max(1e-2 * mean, 1e-12);
  // L L' = H
  std::vector<double> lower(static_cast<size_t>(size * size), 0);
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      double sum = inputs.at(i, j) + (i == j ? damping : 0);
      for (int64_t k = 0; k < j; ++k) sum -= lower[at(i, k)] * lower[at(j, k)];
      lower[at(i, j)] = i == j ? std::sqrt(std::max(sum, damping * 1e-6)) : sum / lower[at(j, j)];
    }
  // M = L^-1, row by row: each is a sum of the rows before it.
  std::vector<double> inverse_lower(static_cast<size_t>(size * size), 0);
  for (int64_t i = 0; i < size; ++i) {
    double* const row = inverse_lower.data() + i * size;
    row[i] = 1;
    for (int64_t k = 0; k < i; ++k) {
      const double factor = lower[at(i, k)];
      const double* const other = inverse_lower.data() + k * size;
      for (int64_t j = 0; j <= k; ++j) row[j] -= factor * other[j];
    }
    for (int64_t j = 0; j <= i; ++j) row[j] /= lower[at(i, i)];
  }
  // H^-1 = M' M
  std::vector<double> inverse(static_cast<size_t>(size * size), 0);
  for (int64_t k = 0; k < size; ++k) {
    const double* const row = inverse_lower.data() + k * size;
    for (int64_t i = 0; i <= k; ++i)
      for (int64_t j = i; j <= k; ++j) inverse[at(i, j)] += row[i] * row[j];
  }
  // U' U = H^-1, row by row of U.
  std::vector<double> upper(static_cast<size_t>(size * size), 0);
  for (int64_t i = 0; i < size; ++i) {
    double* const row = upper.data() + i * size;
    for (int64_t j = i; j < size; ++j) row[j] = inverse[at(i, j)];
    for (int64_t k = 0; k < i; ++k) {
      const double factor = upper[at(k, i)];
      const double* const other = upper.data() + k * size;
      for (int64_t j = i; j < size; ++j) row[j] -= factor * other[j];
    }
    const double diagonal = std::sqrt(std::max(row[i], 1e-300));
    for (int64_t j = i; j < size; ++j) row[j] /= diagonal;
  }
  return upper;
}

}  // namespace

void round_by_moments(IntegerMatrix& quantized, const Matrix& weights, const SecondMoments& inputs, int bits) {
  check(inputs.size == weights.columns, "second moments are of the layer's inputs");
  const std::vector<double> upper = inverse_factor(inputs);
  const int64_t size = weights.columns;
  std::vector<double> row(static_cast<size_t>(size));
  for (int64_t r = 0; r < weights.rows; ++r) {
    std::copy(weights.row(r), weights.row(r) + size, row.begin());
    for (int64_t column = 0; column < size; ++column) {
      const auto at = static_cast<size_t>(column);
      const float scale = quantized.scale_at(r, column);
      const int8_t integer = nearest_integer(static_cast<float>(row[at]), scale, bits);
      quantized.integers[static_cast<size_t>(r * size + column)] = integer;
      const double* const factors = upper.data() + column * size;
      const double error = (row[at] - static_cast<double>(integer) * static_cast<double>(scale)) / factors[column];
      for (int64_t later = column + 1; later < size; ++later) row[static_cast<size_t>(later)] -= error * factors[later];
    }
  }
}

double output_error(const IntegerMatrix& quantized, const Matrix& weights, const SecondMoments& inputs) {
  const Matrix reals = quantized.reals();
  double error = 0;
  std::vector<double> difference(static_cast<size_t>(weights.columns));
  for (int64_t row = 0; row < weights.rows; ++row) {
    for (int64_t c = 0; c < weights.columns; ++c)
      difference[static_cast<size_t>(c)] =
          static_cast<double>(weights.row(row)[c]) - static_cast<double>(reals.row(row)[c]);
    for (int64_t i = 0; i < weights.columns; ++i)
      for (int64_t j = 0; j < weights.columns; ++j)
        error += difference[static_cast<size_t>(i)] * difference[static_cast<size_t>(j)] * inputs.at(i, j);
  }
  return error / static_cast<double>(weights.rows);
}

}  // namespace weft::quantize
