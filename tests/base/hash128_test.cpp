// The expected numbers are those that MurmurHash3_x64_128 is known by elsewhere (Guava's and Wikipedia's examples).
#include "weft/base/hash128.h"

#include <gtest/gtest.h>

#include <string>

namespace weft {
namespace {

std::string hash_of(const std::string& text) { return to_string(hash128(std::as_bytes(std::span(text)))); }

TEST(Hash128, IsMurmurHash3) {
  EXPECT_EQ(hash_of(""), "00000000000000000000000000000000");
  EXPECT_EQ(hash_of("hello"), "cbd8a7b341bd9b025b1e906a48ae1d19");
  EXPECT_EQ(hash_of("The quick brown fox jumps over the lazy dog"), "e34bbc7bbc071b6c7a433ca9c49a9347");
}

TEST(Hash128, DependsOnLengthAndSeed) {
  const std::string zeros(64, '\0');
  for (size_t length = 0; length < 40; ++length)
    EXPECT_NE(hash_of(zeros.substr(0, length)), hash_of(zeros.substr(0, length + 1))) << length;
  EXPECT_NE(hash128(std::as_bytes(std::span(zeros)), 1), hash128(std::as_bytes(std::span(zeros)), 2));
}

}  // namespace
}  // namespace weft
