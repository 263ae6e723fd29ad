// Symmetric positive definite systems of some hundreds of equations, in double.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace weft::tune {

/// K = L L^T with a lower triangular L, row by row.
class Cholesky {
 public:
  /// `matrix` [size,size], of which the lower triangle counts; nullopt where it is not positive definite.
  static std::optional<Cholesky> factor(std::vector<double> matrix, size_t size);

  size_t size() const { return size_; }
  /// x of L x = b
  std::vector<double> solve_lower(std::vector<double> b) const;
  /// x of K x = b
  std::vector<double> solve(std::vector<double> b) const;
  /// [size,size]
  std::vector<double> inverse() const;
  double log_determinant() const;

 private:
  Cholesky(std::vector<double> lower, size_t size) : lower_(std::move(lower)), size_(size) {}
  void solve_upper(std::vector<double>& b) const;
  std::vector<double> lower_;
  size_t size_;
};

}  // namespace weft::tune
