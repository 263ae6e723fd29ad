// Draws a token from the probabilities that a language model gives.
#pragma once

#include <cstdint>
#include <span>

#include "weft/base/rng.h"

namespace weft::infer {

/// Applied in this order, as in Hugging Face's generate().
struct SamplingOptions {
  double temperature = 0.8;  // p^(1/temperature), rescaled, decides; 0: the likeliest token
  int64_t top_k = 0;         // of the likeliest tokens alone (Fan et al. 2018); 0: of all
  double top_p = 1;          // of the fewest likely tokens that together have this probability (Holtzman et al. 2020)
};

/// The place of the token in `probabilities`, which hold one or more numbers that are not negative. Error(numeric)
/// where one is NaN.
int64_t sample(std::span<const float> probabilities, const SamplingOptions& options, RandomStream& random);

}  // namespace weft::infer
