#include "weft/quantize/second_moments.h"

#include "weft/base/error.h"

namespace weft::quantize {

SecondMoments::SecondMoments(int64_t inputs, bool keeps_matrix)
    : size(inputs),
      sums(static_cast<size_t>(keeps_matrix ? inputs * inputs : 0), 0),
      means(static_cast<size_t>(inputs), 0) {}

void SecondMoments::add(std::span<const float> sample) {
  check(static_cast<int64_t>(sample.size()) == size, "a sample has as many numbers as the layer has inputs");
  ++samples;
  for (int64_t row = 0; row < size; ++row) {
    const double x = static_cast<double>(sample[static_cast<size_t>(row)]);
    means[static_cast<size_t>(row)] += x;
    if (x == 0 || !has_matrix()) continue;
    double* const to = sums.data() + row * size;
    for (int64_t column = 0; column <= row; ++column)
      to[column] += x * static_cast<double>(sample[static_cast<size_t>(column)]);
  }
}

}  // namespace weft::quantize
