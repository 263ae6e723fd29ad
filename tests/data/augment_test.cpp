#include "weft/data/augment.h"

#include <numeric>

#include "tests/data/idx_bytes.h"

namespace weft::data {
namespace {

/// Leaves pixel values as they are: (p / 255 - 0) / (1 / 255), rounded where compared.
ChannelStatistics plain_statistics(size_t channels) {
  return {std::vector<float>(channels, 0.0f), std::vector<float>(channels, 1.0f / 255.0f)};
}

std::vector<int> transformed(const Bytes& source, const Shape& shape, const AugmentOptions& options,
                             const AugmentChoice& choice) {
  const Normalization normalization(plain_statistics(static_cast<size_t>(shape[0])), shape[0]);
  std::vector<float> target(source.size(), -1.0f);
  transform(source, shape, options, choice, normalization, target);
  std::vector<int> rounded;
  for (const float value : target) rounded.push_back(static_cast<int>(std::lround(value)));
  return rounded;
}

const Bytes kThreeByThree{1, 2, 3, 4, 5, 6, 7, 8, 9};
const Shape kShape{1, 3, 3};

TEST(Transform, IdentityChangesNothing) {
  const AugmentOptions options{2, Padding::zero, Flip::none};
  EXPECT_EQ(transformed(kThreeByThree, kShape, options, identity_choice(options)),
            (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Transform, FlipMirrorsEachRow) {
  EXPECT_EQ(transformed(kThreeByThree, kShape, {}, {0, 0, true}), (std::vector<int>{3, 2, 1, 6, 5, 4, 9, 8, 7}));
}

TEST(Transform, CropWithZeroPadding) {
  // Padded by 1, the crop at (0,0) sees a black row above and a black column on the left.
  const AugmentOptions options{1, Padding::zero, Flip::none};
  EXPECT_EQ(transformed(kThreeByThree, kShape, options, {0, 0, false}), (std::vector<int>{0, 0, 0, 0, 1, 2, 0, 4, 5}));
  EXPECT_EQ(transformed(kThreeByThree, kShape, options, {2, 2, false}), (std::vector<int>{5, 6, 0, 8, 9, 0, 0, 0, 0}));
}

TEST(Transform, CropWithReflectedBorder) {
  // numpy.pad(x, 2, mode="reflect")[0:3, 3:6]
  const AugmentOptions options{2, Padding::reflect, Flip::none};
  EXPECT_EQ(transformed(kThreeByThree, kShape, options, {0, 3, false}), (std::vector<int>{8, 9, 8, 5, 6, 5, 2, 3, 2}));
}

TEST(Transform, FlipComesAfterTheCrop) {
  const AugmentOptions options{1, Padding::zero, Flip::random};
  EXPECT_EQ(transformed(kThreeByThree, kShape, options, {1, 0, true}), (std::vector<int>{2, 1, 0, 5, 4, 0, 8, 7, 0}));
}

TEST(Transform, TreatsChannelsAlikeAndRectanglesRight) {
  const Bytes source{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};  // (2,2,3)
  const AugmentOptions options{1, Padding::reflect, Flip::none};
  EXPECT_EQ(transformed(source, Shape{2, 2, 3}, options, {2, 1, false}),
            (std::vector<int>{4, 5, 6, 1, 2, 3, 14, 15, 16, 11, 12, 13}));
}

TEST(Transform, NormalisesEachChannelByItsOwnStatistics) {
  const Normalization normalization({{0.5f, 0.25f}, {0.5f, 2.0f}}, 2);
  std::vector<float> target(2);
  transform(Bytes{255, 0}, Shape{2, 1, 1}, {}, {}, normalization, target);
  EXPECT_FLOAT_EQ(target[0], 1.0f);
  EXPECT_FLOAT_EQ(target[1], -0.125f);
}

TEST(Normalization, OtherNumberOfChannelsIsAnError) {
  expect_error(
      [] {
        Normalization({{0.5f}, {1.0f}}, 3);
      },
      ErrorKind::shape, {"statistics of 1 channels", "images of 3"});
}

TEST(DrawChoice, IsAPureFunctionOfSeedEpochAndSample) {
  const AugmentOptions options{4, Padding::zero, Flip::random};
  const auto text = [&](uint64_t seed, int64_t epoch) {
    std::string all;
    for (int64_t index = 0; index < 50; ++index) {
      const AugmentChoice choice = draw_choice(options, seed, epoch, index);
      all += fmt::format("{},{},{};", choice.top, choice.left, choice.flip);
    }
    return all;
  };
  EXPECT_EQ(text(1, 2), text(1, 2));
  EXPECT_NE(text(1, 2), text(2, 2));
  EXPECT_NE(text(1, 2), text(1, 3));
}

TEST(DrawChoice, CoversAllPositionsAndBothSidesEvenly) {
  const AugmentOptions options{2, Padding::zero, Flip::random};
  std::vector<int> tops(5), lefts(5);
  int flips = 0;
  constexpr int kDraws = 10000;
  for (int64_t index = 0; index < kDraws; ++index) {
    const AugmentChoice choice = draw_choice(options, 7, 0, index);
    ++tops.at(static_cast<size_t>(choice.top));
    ++lefts.at(static_cast<size_t>(choice.left));
    flips += choice.flip;
  }
  for (const int count : tops) EXPECT_NEAR(count, 2000, 200);  // 5 standard deviations
  for (const int count : lefts) EXPECT_NEAR(count, 2000, 200);
  EXPECT_NEAR(flips, 5000, 250);
}

TEST(DrawChoice, SwitchingTheFlipOffLeavesTheCropsAsTheyWere) {
  const AugmentOptions with{3, Padding::zero, Flip::random}, without{3, Padding::zero, Flip::none};
  for (int64_t index = 0; index < 20; ++index) {
    EXPECT_EQ(draw_choice(with, 1, 0, index).top, draw_choice(without, 1, 0, index).top);
    EXPECT_EQ(draw_choice(with, 1, 0, index).left, draw_choice(without, 1, 0, index).left);
    EXPECT_FALSE(draw_choice(without, 1, 0, index).flip);
  }
}

TEST(DrawChoice, AlternatingFlipShowsBothSidesInTwoEpochs) {
  const AugmentOptions options{0, Padding::zero, Flip::alternating};
  int flips = 0;
  for (int64_t index = 0; index < 1000; ++index) {
    const bool even = draw_choice(options, 5, 0, index).flip;
    flips += even;
    EXPECT_NE(even, draw_choice(options, 5, 1, index).flip);
    EXPECT_EQ(even, draw_choice(options, 5, 2, index).flip);
  }
  EXPECT_NEAR(flips, 500, 80);
}

TEST(CheckOptions, PaddingTooLargeToMirrorIsAnError) {
  EXPECT_NO_THROW(check_options({2, Padding::reflect, Flip::none}, kShape));
  expect_error(
      [] {
        check_options({3, Padding::reflect, Flip::none}, kShape);
      },
      ErrorKind::usage, {"crop padding 3", "(1,3,3)", "at most 2"});
}

TEST(CheckOptions, NegativePaddingIsAnError) {
  expect_error([] { check_options({-1, Padding::zero, Flip::none}, kShape); }, ErrorKind::usage, {"-1 is negative"});
}

}  // namespace
}  // namespace weft::data
