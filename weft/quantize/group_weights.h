// Weights of few bits, column by column: the error that rounding makes in one column is made up for in those that come
// later, by the second moments of the layer's inputs (Frantar et al. 2022, "GPTQ: accurate post-training quantization
// for generative pre-trained transformers", algorithm 1, without its blocks and with the scales chosen before).
#pragma once

#include "weft/quantize/second_moments.h"
#include "weft/quantize/weights.h"

namespace weft::quantize {

/// Fills in the integers of `quantized`, whose scales are there. Inputs that were never seen count as rarely seen: 1 %
/// of the mean second moment is added to each one's own, as in the paper.
void round_by_moments(IntegerMatrix& quantized, const Matrix& weights, const SecondMoments& inputs, int bits);

/// The mean squared error of the layer's output that the integers make.
double output_error(const IntegerMatrix& quantized, const Matrix& weights, const SecondMoments& inputs);

}  // namespace weft::quantize
