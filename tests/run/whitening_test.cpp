#include "weft/run/whitening.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/fit_rig.h"
#include "weft/base/error.h"

namespace weft::run {
namespace {

/// Five images of 2x4x5 pixels.
data::MemoryDataset formula_images() {
  std::vector<uint8_t> pixels;
  for (int sample = 0; sample < 5; ++sample)
    for (int channel = 0; channel < 2; ++channel)
      for (int y = 0; y < 4; ++y)
        for (int x = 0; x < 5; ++x)
          pixels.push_back(static_cast<uint8_t>(37 * sample + 101 * channel + 17 * y * y + 29 * x + 7 * x * y));
  return data::MemoryDataset({"formula", {2, 4, 5}, 2, {}}, std::move(pixels), {0, 1, 0, 1, 0});
}

data::LoaderOptions as_they_are(const data::ChannelStatistics& statistics) {
  return {.batch = 1, .workers = 0, .augment = {}, .mix = {}, .statistics = statistics};
}

models::ParameterSpec whitening_of(const Shape& shape, double epsilon) {
  return {"whiten.weight", shape, {models::Initializer::Kind::whitening, epsilon}};
}

// NumPy: n = (pixels / 255 - [0.4, 0.5]) / [0.2, 0.3]; p = sliding_window_view(n, (2, 2), axis=(2, 3)) as rows (c, y,
// x); m = p.T @ p / len(p); l, v = eigh(m); v / sqrt(l + 5e-4), the largest l first, the largest component positive.
constexpr double kFirstRowOfMoments[] = {2.00348584,   0.886556453, 0.168537742,  -0.374022812,
                                         -0.573822034, -0.72352514, -0.472775428, 0.151941561};
constexpr double kFilters[] = {
    0.139868,  0.2739,      0.26074,    0.107662,  0.0258927,  -0.111635,  -0.139898,   -0.102888,   //
    -0.23326,  -0.100458,   0.119491,   0.318011,  0.19122,    0.145391,   0.0489321,   -0.125108,   //
    0.506528,  -0.107548,   -0.34924,   0.550097,  -0.0947612, 0.00672621, -0.00454227, 0.0678845,   //
    -0.113332, 0.674915,    -0.311789,  0.0298987, -0.178709,  0.398152,   0.439608,    -0.190927,   //
    0.51774,   -0.313385,   0.581491,   -0.179133, -0.127622,  0.421499,   0.562672,    -0.0987823,  //
    0.411,     0.00385437,  -0.374018,  -0.377972, 0.984249,   0.0291008,  -0.00516745, -0.551224,   //
    0.0877222, 0.338958,    0.139579,   0.0475488, 0.662664,   0.198945,   0.179054,    1.13252,     //
    0.133128,  -0.00800945, -0.0190601, -0.194021, -0.153358,  1.28136,    -1.15494,    0.0498208};

TEST(Whitening, MomentsOfPatchesAreThoseOfNumpy) {
  const data::MemoryDataset images = formula_images();
  const data::Loader loader(images, as_they_are({{0.4f, 0.5f}, {0.2f, 0.3f}}));
  const std::vector<double> moments = patch_moments(loader, 2, 2, 1);
  ASSERT_EQ(moments.size(), 64u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(moments[i], kFirstRowOfMoments[i], 1e-6);
    EXPECT_EQ(moments[8 * i], moments[i]) << "symmetric";
  }
}

TEST(Whitening, FiltersAreThoseOfNumpyWithEitherSign) {
  const data::MemoryDataset images = formula_images();
  const data::Loader loader(images, as_they_are({{0.4f, 0.5f}, {0.2f, 0.3f}}));
  State state;
  ASSERT_TRUE(start_whitening(state, {whitening_of({16, 2, 2, 2}, 5e-4)}, loader, 1));
  const float* weight = state.get("whiten.weight").data_as<float>();
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(static_cast<double>(weight[i]), kFilters[i], 2e-5);
    EXPECT_EQ(weight[64 + i], -weight[i]);
  }
}

TEST(Whitening, FewerFiltersAreThoseOfTheLargestEigenvalues) {
  const data::MemoryDataset images = formula_images();
  const data::Loader loader(images, as_they_are({{0.4f, 0.5f}, {0.2f, 0.3f}}));
  State state;
  ASSERT_TRUE(start_whitening(state, {whitening_of({4, 2, 2, 2}, 5e-4)}, loader, 1));
  const float* weight = state.get("whiten.weight").data_as<float>();
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(static_cast<double>(weight[i]), kFilters[i], 2e-5);
    EXPECT_EQ(weight[16 + i], -weight[i]);
  }
}

TEST(Whitening, SeedChoosesAmongManyImages) {
  std::vector<uint8_t> pixels, labels;
  for (int sample = 0; sample < 5100; ++sample) {
    pixels.push_back(static_cast<uint8_t>(sample * 7919 % 251));
    labels.push_back(0);
  }
  const data::MemoryDataset images({"many", {1, 1, 1}, 1, {}}, std::move(pixels), std::move(labels));
  const data::Loader loader(images, as_they_are({{0}, {1}}));
  EXPECT_EQ(patch_moments(loader, 1, 1, 1), patch_moments(loader, 1, 1, 1));
  EXPECT_NE(patch_moments(loader, 1, 1, 1), patch_moments(loader, 1, 1, 2));
}

TEST(Whitening, LeavesOtherParametersAlone) {
  const data::MemoryDataset images = formula_images();
  const data::Loader loader(images, as_they_are({{0, 0}, {1, 1}}));
  State state;
  EXPECT_FALSE(start_whitening(state, {{"w", {4, 2, 2, 2}, {models::Initializer::Kind::uniform, 1}}}, loader, 1));
  EXPECT_TRUE(state.names().empty());
}

TEST(Whitening, WantsImagesOfAsManyChannels) {
  const data::MemoryDataset images = formula_images();
  const data::Loader loader(images, as_they_are({{0, 0}, {1, 1}}));
  State state;
  try {
    start_whitening(state, {whitening_of({24, 3, 2, 2}, 5e-4)}, loader, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(std::string(error.what()),
              "'whiten.weight' starts from patches of images of 3 channels, 'formula' holds images (2,4,5); choose "
              "other data");
  }
}

}  // namespace
}  // namespace weft::run
