// Keys that several optimisers read, each with the default that is given. Help and range are those of the recipe.
#pragma once

#include <vector>

#include "weft/library/entries.h"

namespace weft::step {

/// With momentum_schedule.name = "constant"; what it is at each step says UpdateBuilder::momentum().
inline Key momentum_key(double value) {
  return {.name = "momentum",
          .value = value,
          .low = 0,
          .high = 0.9999999,
          .help = "sgd, lars, muon, rmsprop",
          .automatic = -1.0};
}

inline Key epsilon_key() {
  return {.name = "epsilon", .value = 1e-8, .low = kAboveZero, .high = 1, .help = "the same, and rmsprop"};
}

/// beta1, beta2, epsilon
inline std::vector<Key> adam_keys() {
  return {{.name = "beta1",
           .value = 0.9,
           .low = 0,
           .high = 0.9999999,
           .help = "adam, adamw, lamb, and what muon leaves to adamw"},
          {.name = "beta2", .value = 0.999, .low = 0, .high = 0.9999999, .help = "the same"},
          epsilon_key()};
}

}  // namespace weft::step
