#include "weft/compile/memoized_backend.h"

#include <gtest/gtest.h>

#include "weft/ops/all.h"

namespace weft {
namespace {

/// Counts what it is asked.
class CountingBackend : public Backend {
 public:
  std::optional<LayoutChoice> preferred_layouts(const NodeSignature&) const override {
    ++asked;
    return std::nullopt;
  }
  bool supports_layouts(const NodeSignature& node) const override {
    ++asked;
    return node.inputs[0].layout.is_plain();
  }
  KernelChoice choose_kernel(const NodeSignature& node) const override {
    ++asked;
    return {to_string(node.inputs[0]), 0, {}};
  }
  bool computes_fast(DType) const override { return false; }
  mutable int asked = 0;
};

class MemoizedBackendTest : public testing::Test {
 protected:
  NodeSignature relu(const std::string& name, const std::string& type) const {
    const TensorType operand = parse_tensor_type(type);
    return {&registry_.get("relu"), name, {operand}, {operand}, {}};
  }
  OpRegistry registry_ = ops::make_registry();
  CountingBackend counting_;
  MemoizedBackend memoized_{counting_};
};

TEST_F(MemoizedBackendTest, AsksOnceForNodesThatDifferInNameOnly) {
  EXPECT_EQ(memoized_.choose_kernel(relu("a", "f32[4]")).kernel, "f32[4]");
  EXPECT_EQ(memoized_.choose_kernel(relu("b", "f32[4]")).kernel, "f32[4]");
  NodeSignature marked = relu("c", "f32[4]");
  marked.attributes.set("in_place", std::vector<int64_t>{0, 0});
  marked.attributes.set("recomputed", true);
  EXPECT_EQ(memoized_.choose_kernel(marked).kernel, "f32[4]");
  EXPECT_EQ(counting_.asked, 1);
}

TEST_F(MemoizedBackendTest, AsksAgainForOtherShapesLayoutsAndQuestions) {
  EXPECT_EQ(memoized_.choose_kernel(relu("a", "f32[1,16,1,1]")).kernel, "f32[1,16,1,1]");
  EXPECT_EQ(memoized_.choose_kernel(relu("a", "f32[1,16,1,1]@aBcd16b")).kernel, "f32[1,16,1,1]@aBcd16b");
  EXPECT_FALSE(memoized_.supports_layouts(relu("a", "f32[1,16,1,1]@aBcd16b")));
  EXPECT_TRUE(memoized_.supports_layouts(relu("a", "f32[1,16,1,1]")));
  EXPECT_FALSE(memoized_.preferred_layouts(relu("a", "f32[1,16,1,1]")).has_value());
  EXPECT_EQ(counting_.asked, 5);
}

}  // namespace
}  // namespace weft
