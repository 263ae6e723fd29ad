// Up or down? Rounding of weights learned layer by layer, so that the layer's outputs change least (Nagel et al. 2020,
// "Up or down? Adaptive rounding for post-training quantization"): every weight becomes floor(w / s) + h(v), where h is
// the rectified sigmoid of equation 23 and v is learned with Adam; a regularizer (equation 24), annealed over the
// steps, drives h to 0 or 1.
//
// The loss is the mean squared error of the outputs over the calibration samples, which the second moments of the
// inputs give exactly: no sample is needed in a step.
#pragma once

#include "weft/quantize/second_moments.h"
#include "weft/quantize/weights.h"

namespace weft::quantize {

struct AdaRoundOptions {
  int steps = 1000;
  double learning_rate = 1e-2;
  double regularizer = 0.01;  // the paper's lambda
  double warm_up = 0.2;       // share of the steps without the regularizer
  double first_beta = 20, last_beta = 2;
};

/// Fills in the integers of `quantized`, whose scales are there. Never worse than rounding to nearest: where it is,
/// that stays.
void round_adaptively(IntegerMatrix& quantized, const Matrix& weights, const SecondMoments& inputs, int bits,
                      const AdaRoundOptions& options = {});

}  // namespace weft::quantize
