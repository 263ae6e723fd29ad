// Cyclic Jacobi rotations (Golub and Van Loan, Matrix Computations, 4th edition, algorithm 8.5.3), which find small
// eigenvalues and their vectors as precisely as large ones.
#include "weft/base/symmetric_eigen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "weft/base/error.h"

namespace weft {

namespace {

constexpr int kMostSweeps = 100;  // convergence is quadratic: ten are many

class Jacobi {
 public:
  Jacobi(std::vector<double> matrix, int64_t size)
      : a_(std::move(matrix)), v_(a_.size(), 0.0), n_(static_cast<size_t>(size)) {
    for (size_t row = 0; row < n_; ++row) {
      v_[row * n_ + row] = 1;
      for (size_t column = 0; column < row; ++column) a_[row * n_ + column] = a_[column * n_ + row];
    }
  }

  SymmetricEigen run() {
    double whole = 0;
    for (const double element : a_) whole += element * element;
    constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
    for (int sweep = 0; sweep < kMostSweeps && off_diagonal() > kEpsilon * kEpsilon * whole; ++sweep)
      for (size_t p = 0; p + 1 < n_; ++p)
        for (size_t q = p + 1; q < n_; ++q) rotate(p, q);
    return sorted();
  }

 private:
  double off_diagonal() const {
    double sum = 0;
    for (size_t row = 0; row < n_; ++row)
      for (size_t column = row + 1; column < n_; ++column) sum += a_[row * n_ + column] * a_[row * n_ + column];
    return sum;
  }

  /// Makes element (p, q) zero.
  void rotate(size_t p, size_t q) {
    const double element = a_[p * n_ + q];
    if (element == 0) return;
    const double ratio = (a_[q * n_ + q] - a_[p * n_ + p]) / (2 * element);
    const double tangent = std::copysign(1.0, ratio) / (std::abs(ratio) + std::hypot(1.0, ratio));
    const double cosine = 1 / std::hypot(1.0, tangent), sine = tangent * cosine;
    const auto turn = [&](double& x, double& y) {
      const double old = x;
      x = cosine * old - sine * y;
      y = sine * old + cosine * y;
    };
    for (size_t row = 0; row < n_; ++row) turn(a_[row * n_ + p], a_[row * n_ + q]);
    for (size_t column = 0; column < n_; ++column) turn(a_[p * n_ + column], a_[q * n_ + column]);
    for (size_t column = 0; column < n_; ++column) turn(v_[p * n_ + column], v_[q * n_ + column]);
    a_[p * n_ + q] = a_[q * n_ + p] = 0;
  }

  SymmetricEigen sorted() const {
    std::vector<size_t> order(n_);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return a_[a * n_ + a] > a_[b * n_ + b]; });
    SymmetricEigen result;
    for (const size_t at : order) {
      result.values.push_back(a_[at * n_ + at]);
      const double *begin = v_.data() + at * n_, *end = begin + n_;
      const double largest =
          *std::max_element(begin, end, [](double x, double y) { return std::abs(x) < std::abs(y); });
      for (const double* component = begin; component != end; ++component)
        result.vectors.push_back(largest < 0 ? -*component : *component);
    }
    return result;
  }

  std::vector<double> a_, v_;  // the matrix on its way to a diagonal one; eigenvectors as rows
  size_t n_;
};

}  // namespace

SymmetricEigen symmetric_eigen(std::vector<double> matrix, int64_t size) {
  check(size >= 0 && matrix.size() == static_cast<size_t>(size * size), "a square matrix");
  return Jacobi(std::move(matrix), size).run();
}

}  // namespace weft
