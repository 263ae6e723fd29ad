#include "weft/base/symmetric_eigen.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/rng.h"

namespace weft {
namespace {

// numpy.linalg.eigh([[4,1,2],[1,3,0],[2,0,1]])
TEST(SymmetricEigen, ValuesAndVectorsAreThoseOfNumpy) {
  const SymmetricEigen result = symmetric_eigen({4, 1, 2, 1, 3, 0, 2, 0, 1}, 3);
  const double values[] = {5.346462189567424, 2.7222456337625314, -0.06870782332995673};
  const double vectors[] = {0.8471666477613964,   0.36103997393521736, 0.389818942769043,
                            -0.25556528520399246, 0.9201125752438983,  -0.2967814581078868,
                            -0.4658272812098052,  0.1517991636963083,  0.8717579698412751};
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(result.values[i], values[i], 1e-14);
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(result.vectors[i], vectors[i], 1e-14);
}

/// B B^T of a random B with columns of very different sizes: eigenvalues over ten orders of magnitude.
std::vector<double> graded_matrix(size_t size) {
  RandomStream random(7);
  std::vector<double> b(size * size), matrix(size * size, 0.0);
  for (size_t i = 0; i < size; ++i)
    for (size_t j = 0; j < size; ++j)
      b[i * size + j] = static_cast<double>(random.normal()) *
                        std::pow(10.0, -5.0 * static_cast<double>(j) / static_cast<double>(size));
  for (size_t i = 0; i < size; ++i)
    for (size_t j = 0; j < size; ++j)
      for (size_t k = 0; k < size; ++k) matrix[i * size + j] += b[i * size + k] * b[j * size + k];
  return matrix;
}

TEST(SymmetricEigen, VectorsAreOrthonormalAndTurnTheMatrixIntoADiagonalOne) {
  constexpr size_t kSize = 27;
  const std::vector<double> matrix = graded_matrix(kSize);
  const SymmetricEigen result = symmetric_eigen(matrix, kSize);
  for (size_t i = 0; i < kSize; ++i) {
    EXPECT_LE(result.values[i], result.values[i > 0 ? i - 1 : 0]);
    const double* x = result.vectors.data() + i * kSize;
    for (size_t j = 0; j < kSize; ++j) {
      const double* y = result.vectors.data() + j * kSize;
      double product = 0, form = 0;
      for (size_t row = 0; row < kSize; ++row) {
        product += x[row] * y[row];
        for (size_t column = 0; column < kSize; ++column) form += x[row] * matrix[row * kSize + column] * y[column];
      }
      EXPECT_NEAR(product, i == j ? 1 : 0, 1e-13);
      EXPECT_NEAR(form, i == j ? result.values[i] : 0, 1e-13 * result.values[0]);
    }
  }
}

TEST(SymmetricEigen, EqualValuesAndZeros) {
  const SymmetricEigen none = symmetric_eigen({}, 0);
  EXPECT_TRUE(none.values.empty());
  const SymmetricEigen zeros = symmetric_eigen({0, 0, 0, 0}, 2);
  EXPECT_EQ(zeros.values, (std::vector<double>{0, 0}));
  EXPECT_EQ(zeros.vectors, (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(symmetric_eigen({2, 0, 0, 2}, 2).values, (std::vector<double>{2, 2}));
}

TEST(SymmetricEigen, LargestComponentIsPositive) {
  const SymmetricEigen result = symmetric_eigen({1, 3, 3, 1}, 2);
  EXPECT_NEAR(result.values[1], -2, 1e-15);
  EXPECT_GT(std::max(result.vectors[2], result.vectors[3]), 0.7);
}

}  // namespace
}  // namespace weft
