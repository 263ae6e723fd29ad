// Random numbers of searchers: doubles that depend on (seed, number) alone, so that a study gives the same trials
// whoever asks for them and however often it was interrupted.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "weft/base/rng.h"

namespace weft::tune {

class Random {
 public:
  /// The draws of one trial, by its number.
  Random(int64_t seed, int64_t number) : stream_(static_cast<uint64_t>(seed), static_cast<uint64_t>(number)) {}

  /// [0, 1), 53 bits.
  double uniform() {
    const uint64_t high = stream_.bits() >> 5, low = stream_.bits() >> 6;
    return static_cast<double>((high << 26) | low) * 0x1p-53;
  }
  /// [0, bound)
  size_t below(size_t bound) { return static_cast<size_t>(uniform() * static_cast<double>(bound)); }
  /// Standard normal by Box-Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log1p(-uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  RandomStream stream_;
};

}  // namespace weft::tune
