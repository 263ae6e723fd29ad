// Changes of layout: every number arrives at its place.
#include "tests/cpu/native_support.h"
#include "weft/cpu/native/movement/relayout.h"

namespace weft {
namespace {

using namespace native_test;

const std::vector<std::string> kLayouts = {"",           "acdb",        "cdba",        "aBcd16b", "aBcd32b",
                                           "ABcd16b16a", "ABcd8b16a2b", "ABcd8a16b2a", "Acdb16a", "ABcd4b16a4b"};

TensorType typed(DType dtype, const Shape& shape, const std::string& layout) {
  return {dtype, shape, parse_layout(layout, shape.rank())};
}

void expect_same(const std::string& op, const TensorType& from, const TensorType& to) {
  Case c;
  c.op = op;
  c.inputs = {from};
  c.outputs = {to};
  c.tolerance = 0;
  expect_matches_reference(c);
}

TEST(NativeRelayout, ReordersBetweenAnyTwoLayoutsOfFullBlocks) {
  for (const Shape& shape : {Shape{32, 64, 3, 3}, Shape{64, 32, 1, 1}, Shape{16, 32, 7, 40}})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const auto& from : kLayouts)
        for (const auto& to : kLayouts) {
          if (shape[0] % block_of(parse_layout(from, 4), 0) != 0 || shape[0] % block_of(parse_layout(to, 4), 0) != 0)
            continue;
          expect_same("reorder", typed(dtype, shape, from), typed(dtype, shape, to));
        }
}

TEST(NativeRelayout, CutsLongRuns) {
  for (const int64_t width : {4096, 1500, 3})
    expect_same("reorder", typed(DType::bf16, {5, width}, ""), typed(DType::bf16, {5, width}, "ba"));
}

TEST(NativeRelayout, WalksThroughTheResult) {
  // The two halves of a block of 16 are what the block of 32 puts side by side.
  const auto walk = native::relayout_dimensions({64, 2}, parse_layout("Ab16a", 2), parse_layout("Ab32a", 2));
  ASSERT_TRUE(walk);
  ASSERT_EQ(walk->size(), 4u);
  const std::vector<std::array<int64_t, 3>> expected{{2, 64, 64}, {2, 16, 32}, {2, 32, 16}, {16, 1, 1}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*walk)[i].size, expected[i][0]) << i;
    EXPECT_EQ((*walk)[i].from, expected[i][1]) << i;
    EXPECT_EQ((*walk)[i].to, expected[i][2]) << i;
  }
}

TEST(NativeRelayout, DeclinesBlocksThatAreNotFull) {
  EXPECT_FALSE(native::relayout_dimensions({2, 21, 4, 4}, {}, parse_layout("aBcd16b", 4)));
  EXPECT_FALSE(native::relayout_dimensions({2, 96, 4, 4}, parse_layout("aBcd24b", 4), parse_layout("aBcd16b", 4)));
}

}  // namespace
}  // namespace weft
