// Counter-based random numbers: a pure function of (key, counter), so that any element of any
// step can be drawn in any order, by any thread, with the same result.
// Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace weft {

/// Four independent 32-bit words for one (key, counter) pair.
inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_high, uint64_t counter_low) {
  uint32_t x0 = static_cast<uint32_t>(counter_low), x1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t x2 = static_cast<uint32_t>(counter_high), x3 = static_cast<uint32_t>(counter_high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53ull * x0, p1 = 0xCD9E8D57ull * x2;
    const uint32_t y0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ k0, y2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ k1;
    x1 = static_cast<uint32_t>(p1);
    x3 = static_cast<uint32_t>(p0);
    x0 = y0;
    x2 = y2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {x0, x1, x2, x3};
}

/// Uniform in [0, 1) with 24 bits.
inline float uniform_from_bits(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// FNV-1a, to derive a key from a name.
inline uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

/// SplitMix64's finaliser: mixes two 64-bit words into one key.
inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15ull * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

/// A sequence of draws under one key, for initialisers, shuffles and augmentation.
class RandomStream {
 public:
  explicit RandomStream(uint64_t key, uint64_t substream = 0) : key_(key), substream_(substream) {}
  uint32_t bits() {
    if (next_ == 4) {
      words_ = philox(key_, substream_, counter_++);
      next_ = 0;
    }
    return words_[static_cast<size_t>(next_++)];
  }
  /// [0, 1)
  float uniform() { return uniform_from_bits(bits()); }
  /// Integer in [0, bound), bound >= 1; Lemire's multiply-shift, bias below 2^-32 * bound.
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>((static_cast<uint64_t>(bits()) * bound) >> 32); }
  /// Standard normal by Box-Muller.
  float normal() {
    const double u = (static_cast<double>(bits()) + 1.0) * 0x1p-32;
    const double v = static_cast<double>(bits()) * 0x1p-32;
    return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v));
  }

 private:
  uint64_t key_, substream_, counter_ = 0;
  std::array<uint32_t, 4> words_{};
  int next_ = 4;
};

}  // namespace weft
