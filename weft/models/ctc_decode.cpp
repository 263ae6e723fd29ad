#include "weft/models/ctc_decode.h"

#include <algorithm>

namespace weft::models {

CtcReading read_greedily(const float* probabilities, int64_t steps, int64_t classes, int64_t stride, int32_t blank) {
  CtcReading reading;
  int32_t before = blank;
  for (int64_t step = 0; step < steps; ++step, probabilities += stride) {
    const float* const largest = std::max_element(probabilities, probabilities + classes);
    const auto letter = static_cast<int32_t>(largest - probabilities);
    if (letter != blank && letter != before) {
      reading.classes.push_back(letter);
      reading.certainty.push_back(*largest);
    } else if (letter != blank) {
      reading.certainty.back() = std::max(reading.certainty.back(), *largest);
    }
    before = letter;
  }
  return reading;
}

}  // namespace weft::models
