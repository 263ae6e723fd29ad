// Keys that several schedules read.
#pragma once

#include "weft/library/entries.h"

namespace weft::step {

inline Key every_epochs_key() {
  return {.name = "every_epochs",
          .value = 0.0,
          .low = 0,
          .high = 1e6,
          .unit = "epochs",
          .help = "step, exponential; 0: a third of the run",
          .automatic = 0.0};
}

inline Key factor_key() {
  return {.name = "factor",
          .value = 0.1,
          .low = kAboveZero,
          .high = 1,
          .help = "step, exponential, plateau, piecewise without factors"};
}

inline Key end_factor_key() {
  return {.name = "end_factor",
          .value = 0.0,
          .low = 0,
          .high = 1,
          .help = "polynomial, plateau: lowest rate, over the peak"};
}

}  // namespace weft::step
