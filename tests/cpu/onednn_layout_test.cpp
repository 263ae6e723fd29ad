#include <gtest/gtest.h>
#include <oneapi/dnnl/dnnl.h>

#include <ostream>

#include "weft/cpu/onednn/convolution.h"
#include "weft/cpu/onednn/memory_desc.h"

namespace weft::onednn {
namespace {

struct LayoutCase {
  const char* tag;
  std::vector<int64_t> dims;
  dnnl_format_tag_t format;
  friend void PrintTo(const LayoutCase& layout, std::ostream* out) { *out << layout.tag; }
};

class LayoutRoundTrip : public testing::TestWithParam<LayoutCase> {};

TEST_P(LayoutRoundTrip, EqualsOneDnnsTagAndReadsBack) {
  const auto& [tag, dims, format] = GetParam();
  const Layout layout = parse_layout(tag, static_cast<int>(dims.size()));
  const auto desc = MemoryDesc::with_layout(dnnl_f32, dims, canonical(layout));
  ASSERT_TRUE(desc.has_value());
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_t made = nullptr;
  ASSERT_EQ(dnnl_memory_desc_create_with_tag(&made, static_cast<int>(dims.size()), dims.data(), dnnl_f32, format),
            dnnl_success);
  EXPECT_TRUE(desc->same_memory(MemoryDesc(made)));
  dnnl_memory_desc_destroy(made);
#else
  dnnl_memory_desc_t made;
  ASSERT_EQ(dnnl_memory_desc_init_by_tag(&made, static_cast<int>(dims.size()), dims.data(), dnnl_f32, format),
            dnnl_success);
  EXPECT_TRUE(desc->same_memory(MemoryDesc(&made)));
#endif
  EXPECT_EQ(desc->bytes(), storage_elements(Shape(dims), layout) * 4);
  const auto read_back = desc->layout();
  ASSERT_TRUE(read_back.has_value());
  EXPECT_EQ(to_string(*read_back), to_string(canonical(layout)));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, LayoutRoundTrip,
    testing::Values(
        LayoutCase{"abcd", {2, 24, 5, 7}, dnnl_abcd}, LayoutCase{"acdb", {2, 24, 5, 7}, dnnl_acdb},
        LayoutCase{"aBcd16b", {2, 24, 5, 7}, dnnl_aBcd16b}, LayoutCase{"aBcd8b", {2, 3, 5, 7}, dnnl_aBcd8b},
        LayoutCase{"aBcd16b", {2, 64, 1, 1}, dnnl_aBcd16b}, LayoutCase{"acdb", {2, 1, 5, 7}, dnnl_acdb},
        LayoutCase{"abcd", {1, 1, 1, 1}, dnnl_abcd}, LayoutCase{"ABcd16b16a", {33, 24, 3, 3}, dnnl_ABcd16b16a},
        LayoutCase{"BAcd16a16b", {32, 64, 1, 1}, dnnl_BAcd16a16b}, LayoutCase{"Acdb16a", {64, 3, 7, 7}, dnnl_Acdb16a},
        LayoutCase{"Acdb16a", {64, 1, 7, 7}, dnnl_Acdb16a}, LayoutCase{"ABcd8b16a2b", {32, 32, 3, 3}, dnnl_ABcd8b16a2b},
        LayoutCase{"ba", {6, 5}, dnnl_ba}, LayoutCase{"acb", {3, 6, 5}, dnnl_acb}));

TEST(OneDnnLayout, ScalarIsOneElement) {
  const auto desc = describe({DType::f32, Shape{}, {}});
  ASSERT_TRUE(desc.has_value());
  EXPECT_EQ(desc->bytes(), 4);
}

TEST(OneDnnLayout, TypesThatOneDnnLacksHaveNoDescriptor) {
  EXPECT_FALSE(describe({DType::i64, Shape{3}, {}}).has_value());
  EXPECT_FALSE(describe({DType::f64, Shape{3}, {}}).has_value());
}

TEST(OneDnnLayout, ChoiceLeftOpenIsNoLayout) {
  EXPECT_FALSE(MemoryDesc::any(dnnl_f32, {2, 24, 5, 7}).layout().has_value());
}

TEST(OneDnnLayout, GapsAreNoLayout) {
  EXPECT_FALSE(MemoryDesc::strided(dnnl_f32, {4, 6}, {8, 1}).layout().has_value());
}

Convolution grouped(int64_t groups, const Shape& weights) {
  Convolution convolution;
  convolution.groups = groups;
  convolution.weights = {DType::f32, weights, {}};
  return convolution;
}

TEST(OneDnnWeights, DepthwiseBlocksOfGroupsAreBlocksOfOutputChannels) {
  const Convolution c = grouped(32, {32, 1, 3, 3});
  const auto desc = MemoryDesc::with_layout(dnnl_f32, {32, 1, 1, 3, 3}, parse_layout("Abcde16a", 5));
  ASSERT_TRUE(desc.has_value());
  const auto layout = weights_layout(c, *desc);
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(to_string(*layout), "Abcd16a");
  EXPECT_TRUE(describe_weights(c, *layout)->same_memory(*desc));
}

TEST(OneDnnWeights, GroupsOfWholeBlocksMerge) {
  const Convolution c = grouped(2, {64, 16, 3, 3});
  const auto desc = MemoryDesc::with_layout(dnnl_f32, {2, 32, 16, 3, 3}, parse_layout("aBCde16c16b", 5));
  const auto layout = weights_layout(c, *desc);
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(to_string(*layout), "ABcd16b16a");
}

TEST(OneDnnWeights, PaddedGroupsHaveNoFourDimensionalLayout) {
  const Convolution c = grouped(4, {24, 6, 3, 3});
  const auto desc = MemoryDesc::with_layout(dnnl_f32, {4, 6, 6, 3, 3}, parse_layout("aBCde8c8b", 5));
  EXPECT_FALSE(weights_layout(c, *desc).has_value());
  EXPECT_FALSE(describe_weights(c, parse_layout("ABcd8b8a", 4)).has_value());
}

}  // namespace
}  // namespace weft::onednn
