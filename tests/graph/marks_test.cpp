#include "weft/graph/marks.h"

#include <gtest/gtest.h>

#include "weft/graph/signature_key.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

class MarksTest : public testing::Test {
 protected:
  NodeSignature signature(Attributes attributes) {
    const TensorType type{DType::f32, Shape({4}), {}};
    return {&registry_.get("relu"), "y", {type}, {type}, std::move(attributes)};
  }
  OpRegistry registry_ = ops::make_registry();
};

TEST_F(MarksTest, EveryMarkIsAcceptedByAnOpThatDeclaresNone) {
  const OpDef& relu = registry_.get("relu");
  const Attributes given{{kInPlace, std::vector<int64_t>{0, 0}}, {kRecomputed, true}, {kKept, true}, {kExact, true}};
  EXPECT_EQ(complete_attributes(relu, "y", given), given);
}

TEST_F(MarksTest, NoMarkCountsInASignature) {
  const Attributes given{{kInPlace, std::vector<int64_t>{0, 0}}, {kRecomputed, true}, {kKept, true}, {kExact, true}};
  EXPECT_EQ(signature_key(signature(given)), signature_key(signature({})));
}

TEST_F(MarksTest, WhatIsNoMarkCounts) {
  EXPECT_FALSE(is_mark("stride"));
  EXPECT_NE(signature_key(signature({{"stride", int64_t{2}}})), signature_key(signature({})));
}

TEST_F(MarksTest, PairsInPlaceAreNoneWithoutTheMark) {
  EXPECT_TRUE(in_place_pairs({}).empty());
  EXPECT_EQ(in_place_pairs({{kInPlace, std::vector<int64_t>{0, 1}}}), (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace weft
