// What a network trained by connectionist temporal classification reads: greedy decoding (Graves et al. 2006, "best
// path"): the likeliest class of each step, repetitions once, blanks left out.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::models {

struct CtcReading {
  std::vector<int32_t> classes;  // of the letters
  std::vector<float> certainty;  // of each, the largest probability among its steps
};

/// Of steps whose `classes` probabilities begin `stride` numbers apart.
CtcReading read_greedily(const float* probabilities, int64_t steps, int64_t classes, int64_t stride, int32_t blank = 0);

}  // namespace weft::models
