#include "weft/quantize/bias_correction.h"

namespace weft::quantize {

std::vector<float> bias_correction(const IntegerMatrix& quantized, const Matrix& weights, const SecondMoments& inputs) {
  const Matrix reals = quantized.reals();
  std::vector<float> correction;
  for (int64_t row = 0; row < weights.rows; ++row) {
    double sum = 0;
    for (int64_t column = 0; column < weights.columns; ++column)
      sum += (static_cast<double>(weights.row(row)[column]) - static_cast<double>(reals.row(row)[column])) *
             inputs.mean(column);
    correction.push_back(static_cast<float>(sum));
  }
  return correction;
}

}  // namespace weft::quantize
