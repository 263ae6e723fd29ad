// Every parser on the kept corpus: files named valid* must be taken, the others may be refused, nothing may break.
// The corpus grows by what the fuzzers find (CONTRIBUTING.md).
#include <gtest/gtest.h>

#include "tests/fuzz/targets.h"
#include "weft/base/files.h"

namespace weft::fuzz {
namespace {

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, IsReadOrRefused) {
  const std::filesystem::path folder = std::filesystem::path(WEFT_SOURCE_DIR) / "tests/fuzz/corpus" / GetParam().name;
  int valid = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::vector<uint8_t> bytes = read_bytes(entry.path());
    const bool accepted = accepts(GetParam(), bytes);
    if (!entry.path().filename().string().starts_with("valid")) continue;
    EXPECT_TRUE(accepted) << entry.path();
    ++valid;
  }
  EXPECT_GT(valid, 0) << "no valid file in " << folder;
}

TEST_P(Corpus, IsReadOrRefusedCutOffAnywhere) {
  const std::filesystem::path folder = std::filesystem::path(WEFT_SOURCE_DIR) / "tests/fuzz/corpus" / GetParam().name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::vector<uint8_t> bytes = read_bytes(entry.path());
    const size_t step = std::max<size_t>(1, bytes.size() / 64);
    for (size_t length = 0; length < bytes.size(); length += step) accepts(GetParam(), Input(bytes).first(length));
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace weft::fuzz
