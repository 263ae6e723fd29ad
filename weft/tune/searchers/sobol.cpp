// Sobol sequences, scrambled as Owen does ("Randomly permuted (t,m,s)-nets and (t,s)-sequences", 1995) by a hash of
// each number's bits (Burley, "Practical hash-based Owen scrambling", JCGT 9 (2020)).
#include <algorithm>
#include <bit>

#include "weft/base/rng.h"
#include "weft/tune/searchers/entries.h"
#include "weft/tune/searchers/sobol_numbers.h"
#include "weft/tune/space/random.h"

namespace weft::tune {

namespace {

constexpr int kBits = 32;

uint32_t reversed(uint32_t x) {
  x = (x >> 16) | (x << 16);
  x = ((x & 0x00ff00ffu) << 8) | ((x & 0xff00ff00u) >> 8);
  x = ((x & 0x0f0f0f0fu) << 4) | ((x & 0xf0f0f0f0u) >> 4);
  x = ((x & 0x33333333u) << 2) | ((x & 0xccccccccu) >> 2);
  return ((x & 0x55555555u) << 1) | ((x & 0xaaaaaaaau) >> 1);
}

/// Flips each bit by a hash of all bits above it.
uint32_t scrambled(uint32_t x, uint32_t seed) {
  x = reversed(x);
  x += seed;
  x ^= x * 0x6c50b47cu;
  x ^= x * 0xb82f1e52u;
  x ^= x * 0xc7afe638u;
  x ^= x * 0x8d22f6e6u;
  return reversed(x);
}

/// The direction numbers of a dimension, each shifted to the top of its word.
std::array<uint32_t, kBits> directions_of(size_t dimension) {
  std::array<uint32_t, kBits> directions{};
  if (dimension == 0) {
    for (int bit = 0; bit < kBits; ++bit) directions[static_cast<size_t>(bit)] = 1u << (kBits - 1 - bit);
    return directions;
  }
  const SobolNumbers& numbers = kSobolNumbers[dimension - 1];
  const auto degree = static_cast<size_t>(std::bit_width(numbers.polynomial)) - 1;
  for (size_t bit = 0; bit < degree; ++bit)
    directions[bit] = static_cast<uint32_t>(numbers.first[bit]) << (kBits - 1 - bit);
  for (size_t bit = degree; bit < kBits; ++bit) {
    directions[bit] = directions[bit - degree] ^ (directions[bit - degree] >> degree);
    for (size_t power = 1; power < degree; ++power)
      if (((numbers.polynomial >> (degree - power)) & 1u) != 0) directions[bit] ^= directions[bit - power];
  }
  return directions;
}

class SobolSearcher : public Searcher {
 public:
  std::optional<Proposal> ask(const SearchState& state) const override {
    const std::vector<double> units =
        sobol_point(state.space.size(), static_cast<uint32_t>(state.history.size()), state.seed);
    return Proposal{state.space.from_unit(units)};
  }
};

}  // namespace

std::vector<double> sobol_point(size_t dimensions, uint32_t index, int64_t seed) {
  std::vector<double> units(dimensions);
  Random random(seed, index);  // dimensions that the table lacks are drawn by chance
  for (size_t dimension = 0; dimension < dimensions; ++dimension) {
    if (dimension > kSobolNumbers.size()) {
      units[dimension] = random.uniform();
      continue;
    }
    const std::array<uint32_t, kBits> directions = directions_of(dimension);
    uint32_t x = 0;
    for (size_t bit = 0; bit < kBits; ++bit)
      if (((index >> bit) & 1u) != 0) x ^= directions[bit];
    x = scrambled(x, static_cast<uint32_t>(mix(static_cast<uint64_t>(seed), dimension)));
    units[dimension] = (static_cast<double>(x) + 0.5) * 0x1p-32;
  }
  return units;
}

std::unique_ptr<Searcher> make_sobol_searcher(const SearcherOptions&) { return std::make_unique<SobolSearcher>(); }

}  // namespace weft::tune
