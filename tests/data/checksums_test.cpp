#include "weft/data/dataset/checksums.h"

#include <gtest/gtest.h>

namespace weft::data {
namespace {

MemoryDataset dots(std::vector<uint8_t> labels, uint8_t pixel = 0) {
  std::vector<uint8_t> pixels(labels.size(), pixel);
  return {{.name = "dots", .sample_shape = {1, 1, 1}, .classes = 4}, std::move(pixels), std::move(labels)};
}

std::string checksum_of(std::vector<uint8_t> labels, uint8_t pixel = 0) {
  return target_checksum(dots(std::move(labels), pixel));
}

TEST(TargetChecksum, LooksAtTargetsAlone) {
  EXPECT_EQ(checksum_of({0, 1, 2, 3}), checksum_of({0, 1, 2, 3}, 7));
  EXPECT_EQ(checksum_of({0, 1, 2, 3}).size(), 16u);
}

TEST(TargetChecksum, NoticesSwappedLabels) { EXPECT_NE(checksum_of({0, 1, 2, 3}), checksum_of({0, 2, 1, 3})); }

TEST(TargetChecksum, LooksAtManySamplesHereAndThere) {
  std::vector<uint8_t> labels(200'000, 1), late = labels;
  std::fill(late.end() - 100, late.end(), 2);
  EXPECT_NE(checksum_of(labels), checksum_of(late));
}

TEST(SampleChecksum, LooksAtSamplesAndTargets) {
  const std::string sum = sample_checksum(dots({0, 1, 2, 3}));
  EXPECT_EQ(sum, sample_checksum(dots({0, 1, 2, 3})));
  EXPECT_NE(sum, sample_checksum(dots({0, 1, 2, 3}, 7)));
  EXPECT_NE(sum, sample_checksum(dots({0, 2, 1, 3})));
}

}  // namespace
}  // namespace weft::data
