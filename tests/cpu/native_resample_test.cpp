#include "tests/cpu/native_support.h"

namespace weft {
namespace {

using namespace native_test;

struct Sizes {
  Shape small, large;
};
const std::vector<Sizes> kSizes = {
    {{2, 21, 9, 7}, {2, 21, 18, 14}},   // twice, with a partial channel block
    {{2, 16, 8, 8}, {2, 16, 8, 24}},    // one axis only
    {{1, 40, 5, 11}, {1, 40, 13, 17}},  // no common divisor
    {{3, 6, 1, 1}, {3, 6, 31, 33}},
};

void expect_both_ways(const std::string& op, const Attributes& attributes) {
  for (const auto& [small, large] : kSizes)
    for (const std::string layout : {"", "acdb", "aBcd16b", "aBcd8b"})
      for (const bool grows : {true, false})
        for (const bool backward : {false, true}) {
          Case c;
          c.op = op + (backward ? "_backward" : "");
          c.inputs = {f32(grows ? small : large, layout)};
          c.outputs = {f32(grows ? large : small, layout)};
          c.attributes = attributes;
          expect_matches_reference(c);
          expect_matches_rounded_reference(in_bf16(c));
        }
}

TEST(NativeResample, NearestMatchesReference) { expect_both_ways("resize", {{"mode", "nearest"}}); }

TEST(NativeResample, BilinearMatchesReference) { expect_both_ways("resize", {{"mode", "bilinear"}}); }

TEST(NativeResample, AdaptivePoolingMatchesReference) { expect_both_ways("adaptive_avg_pool2d", {}); }

TEST(NativeResample, DeclinesLayoutsWithoutAdjacentPixels) {
  Case c;
  c.op = "resize";
  c.inputs = {f32({2, 16, 4, 4}, "abdc")};
  c.outputs = {f32({2, 16, 8, 8}, "abdc")};
  c.attributes = {{"mode", "nearest"}};
  const BareNode node(c);
  std::string why_not;
  EXPECT_EQ(make_native(node.signature, Isa::baseline, 1, why_not), nullptr);
  EXPECT_EQ(why_not, "layout of f32[2,16,4,4]@abdc");
}

}  // namespace
}  // namespace weft
