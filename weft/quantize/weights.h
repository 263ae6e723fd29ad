// Weights as integers: one scale for all, one per output channel, or one per group of input numbers. Matrices stand row
// by row, a row for each output channel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::quantize {

/// A row-major matrix of reals.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> numbers;
  float* row(int64_t index) { return numbers.data() + index * columns; }
  const float* row(int64_t index) const { return numbers.data() + index * columns; }
};

/// Symmetric integers: integer * scale stands for the weight. Rows have `groups` scales each, for equal runs of
/// columns, the last one shorter.
struct IntegerMatrix {
  int64_t rows = 0, columns = 0, group = 0;  // columns that share a scale
  std::vector<int8_t> integers;
  std::vector<float> scales;  // [rows][groups]
  int64_t groups() const { return (columns + group - 1) / group; }
  float scale_at(int64_t row, int64_t column) const {
    return scales[static_cast<size_t>(row * groups() + column / group)];
  }
  /// The weights that the integers stand for.
  Matrix reals() const;
};

/// 2^(bits - 1) - 1: 127 of 8 bits.
int64_t highest_of_bits(int bits);

/// Scales by the largest magnitude of each run of `group` columns of a row; all rows alike where not `per_row`. Where
/// `searches`, the share of it with the least squared error, of 80 from 0.2 to 1.
IntegerMatrix scales_of(const Matrix& weights, int bits, int64_t group, bool per_row, bool searches);
/// Rounds to nearest with these scales.
void round_to_nearest(IntegerMatrix& quantized, const Matrix& weights, int bits);

/// round(weight / scale) within the bits' limits.
int8_t nearest_integer(float weight, float scale, int bits);

}  // namespace weft::quantize
