// A hash of 128 bits of any number of bytes, to know contents by: equal ones are taken to be the same.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft {

struct Hash128 {
  uint64_t high = 0, low = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

/// 32 hexadecimal digits.
std::string to_string(const Hash128& hash);

/// MurmurHash3_x64_128 of A. Appleby (public domain), at some gigabytes per second. Not against people who look for two
/// contents of one hash.
Hash128 hash128(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace weft
