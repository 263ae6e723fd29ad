#include "weft/tensor/layout.h"

#include <set>

#include "tests/support/files_for_tests.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

const std::vector<std::string> kTags{"acdb", "aBcd16b", "aBcd8b", "ABcd16b16a", "Acdb4a", "ABcd4b8a2b", "bacd", "dcba"};

/// A tensor whose element i is i.
Tensor counting_tensor(const Shape& shape) {
  Tensor tensor(DType::f32, shape);
  for (int64_t at = 0; at < tensor.elements(); ++at) tensor.data_as<float>()[at] = static_cast<float>(at);
  return tensor;
}

TEST(Layout, TagsParseBack) {
  for (const std::string& tag : kTags) EXPECT_EQ(to_string(parse_layout(tag, 4)), tag);
  EXPECT_TRUE(parse_layout("", 4).is_plain());
  EXPECT_TRUE(parse_layout("abcd", 4).is_plain());
  EXPECT_EQ(parse_layout("acdb", 4), channels_last(4));
}

TEST(Layout, MalformedTagsAreErrors) {
  for (const char* tag :
       {"abc", "abcde", "abca", "aBcd", "abcd16b", "aBcd1b", "aBcd16", "aBcd16e", "aBcd99999b", "16b", "a-c"})
    expect_error([&] { parse_layout(tag, 4); }, ErrorKind::data, {tag, "no layout of a tensor with 4 dimensions"});
}

TEST(Layout, BlocksTooLargeForAnyMemoryAreErrors) {
  EXPECT_EQ(to_string(parse_layout("aB256b256b", 2)), "aB256b256b");
  for (const char* tag : {"aB256b512b", "ab4096b4096b4096b4096b4096b4096b", "aB4096b4096b4096b4096b4096b4096b",
                          "aB99999999999999999999b"})
    expect_error([&] { parse_layout(tag, 2); }, ErrorKind::data, {tag, "no layout of a tensor with 2 dimensions"});
}

TEST(Layout, BlockedStorageIsPaddedUp) {
  const Layout layout = parse_layout("aBcd16b", 4);
  EXPECT_EQ(block_of(layout, 1), 16);
  EXPECT_EQ(block_of(layout, 0), 1);
  EXPECT_EQ(storage_elements(Shape{2, 17, 3, 3}, layout), 2 * 32 * 3 * 3);
}

TEST(Layout, ChannelsLastOffsetsByHand) {
  // (N,C,H,W) = (2,3,4,5): element (1,2,3,4) lies at ((1*4 + 3)*5 + 4)*3 + 2.
  EXPECT_EQ(storage_offset(Shape{2, 3, 4, 5}, channels_last(4), {1, 2, 3, 4}), 119);
}

TEST(Layout, BlockedOffsetsByHand) {
  // Channel 17 of 20: block 1, lane 1. ((n*2 + 1)*H + h)*W + w)*16 + 1 with H = W = 2.
  EXPECT_EQ(storage_offset(Shape{1, 20, 2, 2}, parse_layout("aBcd16b", 4), {0, 17, 1, 0}),
            ((1 * 2 + 1) * 2 + 0) * 16 + 1);
}

TEST(Layout, EveryElementHasItsOwnPlace) {
  const Shape shape{5, 6, 2, 3};
  for (const std::string& tag : kTags) {
    const Layout layout = parse_layout(tag, 4);
    std::set<int64_t> offsets;
    for (int64_t n = 0; n < 5; ++n)
      for (int64_t c = 0; c < 6; ++c)
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t w = 0; w < 3; ++w) offsets.insert(storage_offset(shape, layout, {n, c, h, w}));
    EXPECT_EQ(static_cast<int64_t>(offsets.size()), shape.elements()) << tag;
    EXPECT_LT(*offsets.rbegin(), storage_elements(shape, layout)) << tag;
  }
}

TEST(CopyLayout, ThereAndBackIsTheSame) {
  const Tensor plain = counting_tensor(Shape{3, 18, 2, 5});
  for (const std::string& tag : kTags) {
    const Tensor back = plain.with_layout(parse_layout(tag, 4)).with_layout({});
    for (int64_t at = 0; at < plain.elements(); ++at)
      ASSERT_EQ(back.data_as<float>()[at], plain.data_as<float>()[at]) << tag;
  }
}

TEST(CopyLayout, ChannelsLastByHand) {
  const Tensor moved = counting_tensor(Shape{1, 2, 1, 3}).with_layout(channels_last(4));
  const std::vector<float> wanted{0, 3, 1, 4, 2, 5};
  EXPECT_EQ(std::vector<float>(moved.data_as<float>(), moved.data_as<float>() + 6), wanted);
}

TEST(CopyLayout, PaddingIsZero) {
  Tensor target(TensorType{DType::f32, Shape{1, 3, 1, 1}, parse_layout("aBcd8b", 4)});
  std::fill_n(target.data_as<float>(), 8, 9.0f);
  const Tensor source = counting_tensor(Shape{1, 3, 1, 1});
  copy_layout(source.type(), source.data(), target.type(), target.data());
  EXPECT_EQ(std::vector<float>(target.data_as<float>(), target.data_as<float>() + 8),
            (std::vector<float>{0, 1, 2, 0, 0, 0, 0, 0}));
}

TEST(CopyLayout, OtherShapesAreABug) {
  const Tensor a(DType::f32, Shape{2}), b(DType::f32, Shape{3}), c(DType::i32, Shape{2});
  Tensor target(DType::f32, Shape{3});
  EXPECT_THROW(copy_layout(a.type(), a.data(), b.type(), target.data()), Error);
  EXPECT_THROW(copy_layout(a.type(), a.data(), c.type(), target.data()), Error);
}

}  // namespace
}  // namespace weft
