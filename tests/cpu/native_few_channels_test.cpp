#include <gmock/gmock.h>

#include <string>

#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;

struct FewChannelsCase {
  Shape image;
  int64_t outputs, kernel, stride, padding;
  std::string image_layout;
};

Case gradient_of_few_channels(const FewChannelsCase& c, const std::string& weights_layout, bool with_bias) {
  const auto size = [&](int64_t in) { return (in + 2 * c.padding - c.kernel) / c.stride + 1; };
  using Pair = std::vector<int64_t>;
  Case node;
  node.isas = {Isa::avx512};
  node.op = "conv2d_backward_weights";
  node.inputs = {f32(c.image, c.image_layout),
                 f32({c.image[0], c.outputs, size(c.image[2]), size(c.image[3])}, "aBcd16b")};
  node.outputs = {f32({c.outputs, c.image[1], c.kernel, c.kernel}, weights_layout)};
  if (with_bias) node.outputs.push_back(f32({c.outputs}));
  node.attributes = {{"stride", Pair{c.stride, c.stride}},
                     {"padding", Pair{c.padding, c.padding}},
                     {"dilation", Pair{1, 1}},
                     {"groups", int64_t{1}},
                     {"kernel", Pair{c.kernel, c.kernel}},
                     {"bias_gradient", with_bias}};
  return node;
}

class NativeFewChannels : public testing::Test {
  void SetUp() override {
    if (detect_isa() != Isa::avx512) GTEST_SKIP() << "this CPU, or this build, has no AVX-512: the kernel declines";
  }
};

TEST_F(NativeFewChannels, SumsWhatTheReferenceSums) {
  for (const FewChannelsCase& c :
       {FewChannelsCase{{5, 6, 14, 14}, 16, 5, 1, 0, "aBcd16b"}, FewChannelsCase{{3, 6, 9, 7}, 16, 5, 1, 2, "aBcd8b"},
        FewChannelsCase{{2, 1, 12, 12}, 6, 5, 1, 2, ""}, FewChannelsCase{{4, 3, 11, 13}, 40, 3, 2, 1, ""},
        FewChannelsCase{{2, 8, 6, 6}, 32, 3, 1, 1, "acdb"}, FewChannelsCase{{1, 2, 5, 5}, 17, 5, 1, 0, ""}})
    for (const std::string weights_layout : {"", "Acdb16a"})
      for (const bool with_bias : {false, true})
        expect_matches_reference(gradient_of_few_channels(c, weights_layout, with_bias));
}

TEST_F(NativeFewChannels, DeclinesWhatOneDnnDoesBetter) {
  const auto why_not = [](const Case& c) {
    const BareNode node(c);
    std::string reason;
    EXPECT_EQ(make_native(node.signature, Isa::avx512, 2, reason), nullptr);
    return reason;
  };
  EXPECT_THAT(why_not(gradient_of_few_channels({{2, 16, 6, 6}, 16, 3, 1, 1, ""}, "", false)),
              testing::HasSubstr("more than 8 channels"));
  EXPECT_THAT(why_not(gradient_of_few_channels({{2, 3, 9, 9}, 16, 7, 1, 1, ""}, "", false)),
              testing::HasSubstr("a kernel of 7 x 7"));
  Case dilated = gradient_of_few_channels({{2, 3, 9, 9}, 16, 3, 1, 1, ""}, "", false);
  dilated.attributes.set("dilation", std::vector<int64_t>{2, 2});
  EXPECT_THAT(why_not(dilated), testing::HasSubstr("dilation"));
}

struct Spread {
  Shape image;
  int64_t outputs, rows, columns;
  std::vector<int64_t> padding;
};

Case gradient_of_data(const Spread& c, const std::string& image_layout, const std::string& weights_layout) {
  using Pair = std::vector<int64_t>;
  Case node;
  node.isas = {Isa::avx512};
  node.op = "conv2d_backward_data";
  const int64_t height = c.image[2] + 2 * c.padding[0] - c.rows + 1,
                width = c.image[3] + 2 * c.padding[1] - c.columns + 1;
  node.inputs = {f32({c.image[0], c.outputs, height, width}, "aBcd16b"),
                 f32({c.outputs, c.image[1], c.rows, c.columns}, weights_layout)};
  node.outputs = {f32(c.image, image_layout)};
  node.attributes = {{"stride", Pair{1, 1}},
                     {"padding", c.padding},
                     {"dilation", Pair{1, 1}},
                     {"groups", int64_t{1}},
                     {"input_size", Pair{c.image[2], c.image[3]}}};
  return node;
}

TEST_F(NativeFewChannels, GradientsOfDataAreThoseOfTheReference) {
  for (const Spread& c : {Spread{{5, 6, 14, 14}, 16, 5, 5, {0, 0}}, Spread{{4, 6, 9, 7}, 16, 5, 5, {2, 2}},
                          Spread{{6, 1, 12, 13}, 6, 5, 3, {2, 0}}, Spread{{4, 3, 11, 6}, 40, 3, 3, {1, 1}},
                          Spread{{4, 8, 6, 6}, 32, 3, 8, {1, 3}}, Spread{{5, 2, 5, 5}, 17, 1, 1, {0, 0}},
                          Spread{{4, 7, 7, 9}, 16, 7, 7, {3, 3}}})
    for (const std::string image_layout : {"", "acdb", "aBcd16b"})
      for (const std::string weights_layout : {"", "Acdb16a"})
        expect_matches_reference(gradient_of_data(c, image_layout, weights_layout));
}

TEST_F(NativeFewChannels, ADataGradientDeclinesWhatOneDnnDoesBetter) {
  const auto why_not = [](const Case& c) {
    const BareNode node(c);
    std::string reason;
    EXPECT_EQ(make_native(node.signature, Isa::avx512, 2, reason), nullptr);
    return reason;
  };
  EXPECT_THAT(why_not(gradient_of_data({{2, 16, 6, 6}, 16, 3, 3, {1, 1}}, "", "")),
              testing::HasSubstr("more than 8 channels"));
  EXPECT_THAT(why_not(gradient_of_data({{2, 8, 6, 12}, 16, 3, 9, {1, 4}}, "", "")),
              testing::HasSubstr("a kernel of 9 columns of 8 channels"));
  EXPECT_THAT(why_not(gradient_of_data({{2, 8, 32, 32}, 16, 3, 3, {1, 1}}, "", "")),
              testing::HasSubstr("the first-level cache does not hold"));
  EXPECT_THAT(why_not(gradient_of_data({{1, 3, 9, 9}, 16, 3, 3, {1, 1}}, "", "")),
              testing::HasSubstr("fewer images than threads"));
  Case strided = gradient_of_data({{2, 3, 9, 9}, 16, 3, 3, {1, 1}}, "", "");
  strided.attributes.set("stride", std::vector<int64_t>{2, 2});
  EXPECT_THAT(why_not(strided), testing::HasSubstr("stride"));
}

}  // namespace
}  // namespace weft
