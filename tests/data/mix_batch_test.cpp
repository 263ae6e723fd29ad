#include "weft/data/augment/mix_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace weft::data {
namespace {

constexpr int64_t kSize = 8;

/// Image i holds i everywhere.
Tensor mixed_images(int64_t count) {
  Tensor tensor(DType::f32, Shape{count, 1, kSize, kSize});
  for (int64_t at = 0; at < tensor.elements(); ++at)
    tensor.data_as<float>()[at] = static_cast<float>(at / (kSize * kSize));
  return tensor;
}

const std::vector<int32_t> kLabels{0, 1, 2, 2};

void mix(Tensor& batch, std::span<const int32_t> labels, const MixOptions& options, uint64_t seed, int64_t epoch,
         int64_t step, Tensor& targets) {
  mix_batch({batch.data_as<float>(), static_cast<size_t>(batch.elements())}, Shape{1, kSize, kSize}, labels, {},
            options, seed, epoch, step, {targets.data_as<float>(), static_cast<size_t>(targets.elements())});
}

TEST(MixBatch, MixupAddsShares) {
  Tensor batch = mixed_images(4), targets(DType::f32, Shape{4, 3});
  mix(batch, kLabels, {.mixup = 1, .cutmix = 0}, 7, 0, 0, targets);
  const float* t = targets.data_as<float>();
  const float kept = t[0];
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 1);
  EXPECT_NEAR(t[2], 1 - kept, 1e-6) << "the first is mixed with the last";
  EXPECT_NEAR(t[9 + 2], 1, 1e-6) << "both of class 2";
  EXPECT_NEAR(batch.data_as<float>()[0], 3 * (1 - kept), 1e-5);
  EXPECT_NEAR(batch.data_as<float>()[2 * kSize * kSize], 2 * kept + 1 * (1 - kept), 1e-5) << "its neighbour as it was";
}

TEST(MixBatch, CutmixTakesABoxAndCountsItsPixels) {
  for (int64_t step = 0; step < 50; ++step) {
    Tensor batch = mixed_images(4), targets(DType::f32, Shape{4, 3});
    mix(batch, kLabels, {.mixup = 0, .cutmix = 1}, 7, 0, step, targets);
    int own = 0;
    for (int64_t at = 0; at < kSize * kSize; ++at) {
      const float value = batch.data_as<float>()[kSize * kSize + at];
      ASSERT_TRUE(value == 0 || value == 1);
      own += value == 1;
    }
    EXPECT_NEAR(targets.data_as<float>()[3 + 1], static_cast<double>(own) / (kSize * kSize), 1e-6);
  }
}

TEST(MixBatch, SharesFollowTheBetaDistribution) {
  double mean = 0, variance = 0;
  constexpr int kDraws = 4000;
  Tensor targets(DType::f32, Shape{4, 3});
  for (int64_t step = 0; step < kDraws; ++step) {
    Tensor batch = mixed_images(4);
    mix(batch, kLabels, {.mixup = 0.4, .cutmix = 0}, 7, 0, step, targets);
    const double kept = static_cast<double>(targets.data_as<float>()[0]);
    mean += kept / kDraws;
    variance += (kept - 0.5) * (kept - 0.5) / kDraws;
  }
  EXPECT_NEAR(mean, 0.5, 0.03);
  EXPECT_NEAR(variance, 1 / (4 * (2 * 0.4 + 1)), 0.006);  // of Beta(a, a)
}

TEST(MixBatch, IsAPureFunctionOfSeedEpochAndStep) {
  const auto kept = [](uint64_t seed, int64_t epoch, int64_t step) {
    Tensor batch = mixed_images(4), targets(DType::f32, Shape{4, 3});
    mix(batch, kLabels, {.mixup = 1, .cutmix = 1}, seed, epoch, step, targets);
    return targets.data_as<float>()[0];
  };
  EXPECT_EQ(kept(1, 2, 3), kept(1, 2, 3));
  EXPECT_NE(kept(1, 2, 3), kept(2, 2, 3));
  EXPECT_NE(kept(1, 2, 3), kept(1, 3, 3));
  EXPECT_NE(kept(1, 2, 3), kept(1, 2, 4));
}

TEST(MixBatch, APieceWithTheImageBeforeItBecomesWhatTheBatchBecomes) {
  for (int64_t step = 0; step < 6; ++step) {
    const MixOptions options{.mixup = 1, .cutmix = 1};
    Tensor batch = mixed_images(4), targets(DType::f32, Shape{4, 3}), as_it_was = mixed_images(4);
    mix(batch, kLabels, options, 7, 0, step, targets);
    constexpr size_t kPixels = kSize * kSize;
    std::vector<float> piece(as_it_was.data_as<float>() + 2 * kPixels, as_it_was.data_as<float>() + 4 * kPixels);
    std::vector<float> shares(6);
    const MixNeighbour before{{as_it_was.data_as<float>() + kPixels, kPixels}, kLabels[1]};
    mix_batch(piece, Shape{1, kSize, kSize}, std::span(kLabels).subspan(2), before, options, 7, 0, step, shares);
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), batch.data_as<float>() + 2 * kPixels));
    EXPECT_TRUE(std::equal(shares.begin(), shares.end(), targets.data_as<float>() + 6));
  }
}

}  // namespace
}  // namespace weft::data
