#include "ops_fixture.h"

namespace weft::ops {
namespace {

class Matmul : public OpsTest {
 protected:
  Shape product(Shape a, Shape b, bool transpose_a = false, bool transpose_b = false) {
    Graph graph(registry_);
    const ValueId left = graph.add_input(InputKind::batch, "a", {DType::f32, std::move(a), {}});
    const ValueId right = graph.add_input(InputKind::batch, "b", {DType::f32, std::move(b), {}});
    return graph.shape(matmul(graph, left, right, transpose_a, transpose_b));
  }
  std::string error(Shape a, Shape b, bool transpose_a = false, bool transpose_b = false) {
    const ValueId left = input("rows", std::move(a)), right = input("fc.weight", std::move(b));
    return shape_error([&] { matmul(graph_, left, right, transpose_a, transpose_b, "fc"); });
  }
};

TEST_F(Matmul, Matrices) { EXPECT_EQ(product({3, 5}, {5, 4}), Shape({3, 4})); }
TEST_F(Matmul, Transposed) {
  EXPECT_EQ(product({5, 3}, {5, 4}, true, false), Shape({3, 4}));
  EXPECT_EQ(product({3, 5}, {4, 5}, false, true), Shape({3, 4}));
  EXPECT_EQ(product({5, 3}, {4, 5}, true, true), Shape({3, 4}));
}
TEST_F(Matmul, LeadingDimensionsBroadcast) {
  EXPECT_EQ(product({2, 1, 3, 4}, {5, 4, 2}), Shape({2, 5, 3, 2}));
  EXPECT_EQ(product({4, 2}, {7, 2, 3}), Shape({7, 4, 3}));
}
TEST_F(Matmul, FlopsOfABatch) {
  const ValueId a = input("a", {6, 5, 3}), b = input("b", {5, 4});
  const ValueId product = matmul(graph_, a, b, true, false);
  ASSERT_EQ(graph_.shape(product), Shape({6, 3, 4}));
  EXPECT_EQ(flops(product), 2 * 6 * 3 * 4 * 5);
}

/// The weight's gradient of a linear layer over sequences is one product, not one per sequence and a sum.
TEST_F(Matmul, GradientOfOneMatrixForABatchIsOneProduct) {
  const ValueId a = input("a", {8, 6, 5}), b = input("b", {4, 5});
  const ValueId y = matmul(graph_, a, b, false, true);
  GradContext context{graph_, graph_.value(y).producer, {a, b}, {y}, {input("dy", {8, 6, 4})}};
  const auto gradients = registry_.get("matmul").gradient(context);
  EXPECT_EQ(graph_.shape(gradients[0]), Shape({8, 6, 5}));
  EXPECT_EQ(graph_.shape(gradients[1]), Shape({4, 5}));
  EXPECT_EQ(graph_.producer(gradients[1])->op->name, "matmul");
}

TEST_F(Matmul, InnerSizesDiffer) {
  EXPECT_EQ(error({128, 784}, {512, 10}),
            "[matmul] 'fc': 'rows' (128,784) has rows of 784 elements, but 'fc.weight' (512,10) has columns of 512");
}
TEST_F(Matmul, InnerSizesDifferTransposed) {
  EXPECT_EQ(error({128, 784}, {10, 512}, false, true),
            "[matmul] 'fc': 'rows' (128,784) has rows of 784 elements, but 'fc.weight' (10,512) transposed has columns "
            "of 512");
}
TEST_F(Matmul, Vector) {
  EXPECT_EQ(
      error({5}, {5, 4}),
      "[matmul] 'fc': operands are matrices or stacks of them (rank 2 or more), got 'rows' (5); reshape it first");
}
TEST_F(Matmul, BatchesDiffer) {
  EXPECT_EQ(
      error({2, 3, 4}, {3, 4, 5}),
      "[matmul] 'fc': leading dimensions of 'rows' (2,3,4) and 'fc.weight' (3,4,5) do not broadcast; they must be "
      "equal or 1");
}
TEST_F(Matmul, Integers) {
  const ValueId a = input("tokens", {2, 3}, DType::i32), b = input("b", {3, 4});
  EXPECT_EQ(shape_error([&] { matmul(graph_, a, b, false, false, "fc"); }),
            "[matmul] 'fc': b wants i32, got 'b' (3,4) of f32; add a cast");
}

}  // namespace
}  // namespace weft::ops
