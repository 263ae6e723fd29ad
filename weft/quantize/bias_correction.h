// Rounding of weights moves the mean of a layer's outputs; the bias takes that back (Nagel et al. 2019, section 4.2,
// with the means of the inputs measured in place of those that batch norms tell).
#pragma once

#include <vector>

#include "weft/quantize/second_moments.h"
#include "weft/quantize/weights.h"

namespace weft::quantize {

/// What is to be added to the bias of each row: the sum over inputs of (weight - rounded weight) times the input's
/// mean.
std::vector<float> bias_correction(const IntegerMatrix& quantized, const Matrix& weights, const SecondMoments& inputs);

}  // namespace weft::quantize
