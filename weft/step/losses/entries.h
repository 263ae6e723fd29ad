// One function per loss, each in the file of its name; all_losses.cpp lists them.
#pragma once

#include "weft/library/entries.h"

namespace weft::step {

LossEntry cross_entropy_entry();
LossEntry mse_entry();
LossEntry soft_cross_entropy_entry();

std::vector<LossEntry> all_losses();

/// Share of the target that is spread over all classes.
inline Key label_smoothing_key() {
  return {.name = "label_smoothing",
          .value = 0.0,
          .low = 0,
          .high = 0.999,
          .help = "share of the target spread over all classes"};
}

}  // namespace weft::step
