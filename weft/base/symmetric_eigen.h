// Eigenvalues and eigenvectors of small symmetric matrices.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

struct SymmetricEigen {
  std::vector<double> values;   // falling
  std::vector<double> vectors;  // row i belongs to value i; of length 1, its largest component positive
};

/// `matrix` [size,size], row by row; of the two triangles the upper one counts. To rounding in double; the effort grows
/// with the cube of the size: for sizes up to a few hundred.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, int64_t size);

}  // namespace weft
