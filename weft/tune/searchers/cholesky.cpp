#include "weft/tune/searchers/cholesky.h"

#include <cmath>

namespace weft::tune {

namespace {

double dot_product(const double* a, const double* b, size_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t index = 0; index < count; ++index) sum += a[index] * b[index];
  return sum;
}

}  // namespace

std::optional<Cholesky> Cholesky::factor(std::vector<double> matrix, size_t size) {
  for (size_t row = 0; row < size; ++row) {
    double* const own = matrix.data() + row * size;
    for (size_t column = 0; column < row; ++column) {
      const double* const other = matrix.data() + column * size;
      own[column] = (own[column] - dot_product(own, other, column)) / other[column];
    }
    const double square = own[row] - dot_product(own, own, row);
    if (!(square > 0) || !std::isfinite(square)) return std::nullopt;
    own[row] = std::sqrt(square);
  }
  return Cholesky(std::move(matrix), size);
}

std::vector<double> Cholesky::solve_lower(std::vector<double> b) const {
  for (size_t row = 0; row < size_; ++row) {
    const double* const own = lower_.data() + row * size_;
    b[row] = (b[row] - dot_product(own, b.data(), row)) / own[row];
  }
  return b;
}

void Cholesky::solve_upper(std::vector<double>& b) const {
  for (size_t row = size_; row-- > 0;) {
    const double* const own = lower_.data() + row * size_;
    const double value = b[row] /= own[row];
    for (size_t column = 0; column < row; ++column) b[column] -= own[column] * value;
  }
}

std::vector<double> Cholesky::solve(std::vector<double> b) const {
  b = solve_lower(std::move(b));
  solve_upper(b);
  return b;
}

std::vector<double> Cholesky::inverse() const {
  std::vector<double> inverse(size_ * size_);
  for (size_t row = 0; row < size_; ++row) {
    std::vector<double> unit(size_);
    unit[row] = 1;
    const std::vector<double> solved = solve(std::move(unit));
    for (size_t column = 0; column < size_; ++column) inverse[row * size_ + column] = solved[column];
  }
  return inverse;
}

double Cholesky::log_determinant() const {
  double sum = 0;
  for (size_t row = 0; row < size_; ++row) sum += std::log(lower_[row * size_ + row]);
  return 2 * sum;
}

}  // namespace weft::tune
