#include "weft/data/augment/augment.h"

#include <numeric>

#include "tests/data/idx_bytes.h"
#include "weft/data/augment/augment_color.h"
#include "weft/data/augment/erase.h"

namespace weft::data {
namespace {

/// Leaves pixel values as they are: (p / 255 - 0) / (1 / 255), rounded where compared.
ChannelStatistics plain_statistics(size_t channels) {
  return {std::vector<float>(channels, 0.0f), std::vector<float>(channels, 1.0f / 255.0f)};
}

AugmentOptions options_of(int64_t crop_padding, Padding padding, Flip flip) {
  AugmentOptions options;
  options.crop_padding = crop_padding;
  options.padding = padding;
  options.flip = flip;
  return options;
}

AugmentChoice choice_of(int64_t top, int64_t left, bool flip) {
  AugmentChoice choice;
  choice.top = top;
  choice.left = left;
  choice.flip = flip;
  return choice;
}

std::vector<int> transformed(const Bytes& source, const Shape& shape, const AugmentOptions& options,
                             const AugmentChoice& choice) {
  const Normalization normalization(plain_statistics(static_cast<size_t>(shape[0])), shape[0]);
  std::vector<float> target(source.size(), -1.0f);
  std::vector<float> scratch;
  transform(source, shape, options, choice, normalization, target, scratch);
  std::vector<int> rounded;
  for (const float value : target) rounded.push_back(static_cast<int>(std::lround(value)));
  return rounded;
}

const Bytes kThreeByThree{1, 2, 3, 4, 5, 6, 7, 8, 9};
const Shape kShape{1, 3, 3};

TEST(Transform, IdentityChangesNothing) {
  const AugmentOptions options = options_of(2, Padding::zero, Flip::none);
  EXPECT_EQ(transformed(kThreeByThree, kShape, options, identity_choice(options)),
            (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Transform, FlipMirrorsEachRow) {
  EXPECT_EQ(transformed(kThreeByThree, kShape, {}, choice_of(0, 0, true)),
            (std::vector<int>{3, 2, 1, 6, 5, 4, 9, 8, 7}));
}

TEST(Transform, CropWithZeroPadding) {
  // Padded by 1, the crop at (0,0) sees a black row above and a black column on the left.
  const AugmentOptions options = options_of(1, Padding::zero, Flip::none);
  EXPECT_EQ(transformed(kThreeByThree, kShape, options, choice_of(0, 0, false)),
            (std::vector<int>{0, 0, 0, 0, 1, 2, 0, 4, 5}));
  EXPECT_EQ(transformed(kThreeByThree, kShape, options, choice_of(2, 2, false)),
            (std::vector<int>{5, 6, 0, 8, 9, 0, 0, 0, 0}));
}

TEST(Transform, CropWithReflectedBorder) {
  // numpy.pad(x, 2, mode="reflect")[0:3, 3:6]
  const AugmentOptions options = options_of(2, Padding::reflect, Flip::none);
  EXPECT_EQ(transformed(kThreeByThree, kShape, options, choice_of(0, 3, false)),
            (std::vector<int>{8, 9, 8, 5, 6, 5, 2, 3, 2}));
}

TEST(Transform, FlipComesAfterTheCrop) {
  const AugmentOptions options = options_of(1, Padding::zero, Flip::random);
  EXPECT_EQ(transformed(kThreeByThree, kShape, options, choice_of(1, 0, true)),
            (std::vector<int>{2, 1, 0, 5, 4, 0, 8, 7, 0}));
}

TEST(Transform, TreatsChannelsAlikeAndRectanglesRight) {
  const Bytes source{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};  // (2,2,3)
  const AugmentOptions options = options_of(1, Padding::reflect, Flip::none);
  EXPECT_EQ(transformed(source, Shape{2, 2, 3}, options, choice_of(2, 1, false)),
            (std::vector<int>{4, 5, 6, 1, 2, 3, 14, 15, 16, 11, 12, 13}));
}

TEST(Transform, NormalisesEachChannelByItsOwnStatistics) {
  const Normalization normalization({{0.5f, 0.25f}, {0.5f, 2.0f}}, 2);
  std::vector<float> target(2);
  std::vector<float> scratch;
  transform(Bytes{255, 0}, Shape{2, 1, 1}, {}, {}, normalization, target, scratch);
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
  const AugmentOptions options = options_of(4, Padding::zero, Flip::random);
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
  const AugmentOptions options = options_of(2, Padding::zero, Flip::random);
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
  const AugmentOptions with = options_of(3, Padding::zero, Flip::random),
                       without = options_of(3, Padding::zero, Flip::none);
  for (int64_t index = 0; index < 20; ++index) {
    EXPECT_EQ(draw_choice(with, 1, 0, index).top, draw_choice(without, 1, 0, index).top);
    EXPECT_EQ(draw_choice(with, 1, 0, index).left, draw_choice(without, 1, 0, index).left);
    EXPECT_FALSE(draw_choice(without, 1, 0, index).flip);
  }
}

TEST(DrawChoice, AlternatingFlipShowsBothSidesInTwoEpochs) {
  const AugmentOptions options = options_of(0, Padding::zero, Flip::alternating);
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
  EXPECT_NO_THROW(check_options(options_of(2, Padding::reflect, Flip::none), kShape));
  expect_error([] { check_options(options_of(3, Padding::reflect, Flip::none), kShape); }, ErrorKind::usage,
               {"crop padding 3", "(1,3,3)", "at most 2"});
}

TEST(CheckOptions, NegativePaddingIsAnError) {
  expect_error([] { check_options(options_of(-1, Padding::zero, Flip::none), kShape); }, ErrorKind::usage,
               {"-1 is negative"});
}

TEST(CheckOptions, HueOfGreyImagesIsAnError) {
  AugmentOptions options;
  options.changes = {random_color({.hue = 0.1})};
  expect_error([&] { check_options(options, kShape); }, ErrorKind::usage, {"saturation and hue are of colours"});
}

TEST(Transform, ErasedRegionsAreTheMean) {
  const Normalization normalization({{0.5f}, {0.25f}}, 1);
  std::vector<float> target(9), scratch;
  AugmentOptions options;
  options.changes = {cutout_change(2)};
  AugmentChoice choice;
  choice.sample = {.seed = 1, .epoch = 2, .index = 3};
  transform(Bytes(9, 255), kShape, options, choice, normalization, target, scratch);
  RandomStream random = stream_of("cutout", choice.sample);
  const Region erased = draw_cutout(kShape, 2, random);
  ASSERT_GT(erased.height * erased.width, 0);
  for (int64_t y = 0; y < 3; ++y)
    for (int64_t x = 0; x < 3; ++x) {
      const bool inside =
          y >= erased.top && y < erased.top + erased.height && x >= erased.left && x < erased.left + erased.width;
      EXPECT_EQ(target[static_cast<size_t>(3 * y + x)], inside ? 0 : 2) << y << ", " << x;
    }
}

TEST(Transform, ColoursAndRotationComeBeforeNormalising) {
  const Normalization normalization({{0.5f}, {0.25f}}, 1);
  std::vector<float> target(9), scratch;
  AugmentChoice choice;
  AugmentOptions options;
  options.changes = {{.name = "half", .apply = [](const PixelCall& call) {
                        for (float& value : call.image) value *= 0.5f;
                      }}};
  choice.degrees = 90;
  Bytes source(9, 0);
  source[1] = 255;  // above the middle; a quarter turn against the clock brings it to the left
  transform(source, kShape, options, choice, normalization, target, scratch);
  for (size_t at = 0; at < 9; ++at) EXPECT_NEAR(target[at], at == 3 ? 0 : -2, 1e-5) << at;
}

template <typename Draw>
Region with_stream(const char* kind, int64_t index, const Draw& draw) {
  RandomStream random = stream_of(kind, {.seed = 3, .epoch = 0, .index = index});
  return draw(random);
}

TEST(DrawChoice, CutoutIsASquareThatMayStickOut) {
  const Shape shape{1, 10, 12};
  std::vector<int> rows(10);
  for (int64_t index = 0; index < 2000; ++index) {
    const Region region =
        with_stream("cutout", index, [&](RandomStream& random) { return draw_cutout(shape, 4, random); });
    ASSERT_TRUE(region.top >= 0 && region.left >= 0 && region.top + region.height <= 10 &&
                region.left + region.width <= 12 && region.height <= 4 && region.width <= 4);
    EXPECT_GE(region.height, 2);
    ++rows.at(static_cast<size_t>(region.top));
  }
  EXPECT_NEAR(rows[0], 600, 120) << "middles in rows 0, 1 and 2 of 10";
}

TEST(DrawChoice, ErasingHappensAsOftenAsAskedAndCoversTwoToThirtyThreePercent) {
  const Shape shape{3, 64, 64};
  int erased = 0;
  for (int64_t index = 0; index < 4000; ++index) {
    const Region region =
        with_stream("erasing", index, [&](RandomStream& random) { return draw_erased(shape, 0.25, random); });
    if (region.height == 0) continue;
    ++erased;
    const auto share = static_cast<double>(region.height * region.width) / (64 * 64);
    EXPECT_GT(share, 0.015);
    EXPECT_LT(share, 0.345);
    EXPECT_LE(region.top + region.height, 64);
    EXPECT_LE(region.left + region.width, 64);
  }
  EXPECT_NEAR(erased, 1000, 140);
}

TEST(DrawChoice, NewKindsLeaveCropsAndFlipsAsTheyWere) {
  const AugmentOptions without = options_of(3, Padding::zero, Flip::random);
  AugmentOptions with = without;
  with.rotate = 10;
  with.changes = {random_color({.hue = 0.1}), cutout_change(2), erasing_change(0.5)};
  for (int64_t index = 0; index < 20; ++index) {
    const AugmentChoice a = draw_choice(with, 1, 2, index), b = draw_choice(without, 1, 2, index);
    EXPECT_EQ(a.top, b.top);
    EXPECT_EQ(a.left, b.left);
    EXPECT_EQ(a.flip, b.flip);
    EXPECT_LE(std::abs(a.degrees), 10);
    EXPECT_EQ(b.degrees, 0);
  }
}

}  // namespace
}  // namespace weft::data
