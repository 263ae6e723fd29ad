#include "weft/base/hash128.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace weft {

namespace {

constexpr uint64_t kFirst = 0x87c37b91114253d5ull, kSecond = 0x4cf5ad432745937full;

uint64_t mix_first(uint64_t word) { return std::rotl(word * kFirst, 31) * kSecond; }
uint64_t mix_second(uint64_t word) { return std::rotl(word * kSecond, 33) * kFirst; }

uint64_t finish(uint64_t hash) {
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdull;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return hash ^ (hash >> 33);
}

}  // namespace

std::string to_string(const Hash128& hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

Hash128 hash128(std::span<const std::byte> bytes, uint64_t seed) {
  uint64_t first = seed, second = seed;
  const size_t blocks = bytes.size() / 16;
  for (size_t block = 0; block < blocks; ++block) {
    uint64_t words[2];
    std::memcpy(words, bytes.data() + block * 16, sizeof words);
    first ^= mix_first(words[0]);
    first = (std::rotl(first, 27) + second) * 5 + 0x52dce729;
    second ^= mix_second(words[1]);
    second = (std::rotl(second, 31) + first) * 5 + 0x38495ab5;
  }
  uint64_t rest[2] = {0, 0};
  if (bytes.size() % 16 != 0) std::memcpy(rest, bytes.data() + blocks * 16, bytes.size() % 16);
  second ^= mix_second(rest[1]);
  first ^= mix_first(rest[0]);
  first ^= bytes.size();
  second ^= bytes.size();
  first += second;
  second += first;
  first = finish(first);
  second = finish(second);
  first += second;
  second += first;
  return {first, second};
}

}  // namespace weft
