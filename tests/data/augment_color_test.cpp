// Hues are those of Python's colorsys, the rest is computed by hand from torchvision's definitions.
#include "weft/data/augment/augment_color.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::data {
namespace {

using Values = std::vector<float>;

Values changed(Values image, const Shape& shape, const ColorChange& change) {
  change_color(image, shape, change);
  return image;
}

void expect_near(const Values& got, const Values& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t at = 0; at < got.size(); ++at) EXPECT_NEAR(got[at], wanted[at], 1e-5) << at;
}

const Shape kPixel{3, 1, 1};

TEST(ChangeColor, NothingIsChangedByDefault) {
  EXPECT_EQ(changed({0.8f, 0.4f, 0.2f}, kPixel, {}), (Values{0.8f, 0.4f, 0.2f}));
}

TEST(ChangeColor, BrightnessIsAFactorUpToWhite) {
  expect_near(changed({0.8f, 0.4f, 0.2f}, kPixel, {.brightness = 1.5f}), {1.0f, 0.6f, 0.3f});
}

TEST(ChangeColor, ContrastIsTheDistanceFromTheMeanGrey) {
  expect_near(changed({0.2f, 0.6f}, Shape{1, 1, 2}, {.contrast = 0.5f}), {0.3f, 0.5f});
}

TEST(ChangeColor, SaturationIsTheDistanceFromGrey) {
  const float grey = 0.2989f * 0.8f + 0.587f * 0.4f + 0.114f * 0.2f;
  expect_near(changed({0.8f, 0.4f, 0.2f}, kPixel, {.saturation = 0}), {grey, grey, grey});
  expect_near(changed({0.8f, 0.4f, 0.2f}, kPixel, {.saturation = 0.5f}),
              {(0.8f + grey) / 2, (0.4f + grey) / 2, (0.2f + grey) / 2});
}

TEST(ChangeColor, HueTurnsTheCircle) {
  expect_near(changed({0.8f, 0.4f, 0.2f}, kPixel, {.hue = 0.25f}), {0.3f, 0.8f, 0.2f});
  expect_near(changed({0.1f, 0.9f, 0.3f}, kPixel, {.hue = -0.4f}), {0.9f, 0.1f, 0.22f});
  expect_near(changed({0.2f, 0.3f, 0.95f}, kPixel, {.hue = 0.5f}), {0.95f, 0.85f, 0.2f});
  expect_near(changed({0.4f, 0.4f, 0.4f}, kPixel, {.hue = 0.3f}), {0.4f, 0.4f, 0.4f});
}

}  // namespace
}  // namespace weft::data
