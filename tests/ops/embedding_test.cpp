#include "ops_fixture.h"

namespace weft::ops {
namespace {

using Embedding = OpsTest;

TEST_F(Embedding, AppendsTheWidth) {
  const ValueId rows = embedding(graph_, input("table", {65, 16}), input("tokens", {2, 7}, DType::i32));
  EXPECT_EQ(graph_.type(rows), TensorType({DType::f32, {2, 7, 16}, {}}));
}
TEST_F(Embedding, GradientHasNoneForTheIndices) {
  const ValueId table = input("table", {65, 16}), tokens = input("tokens", {2, 7}, DType::i32);
  const ValueId rows = embedding(graph_, table, tokens);
  GradContext context{graph_, graph_.value(rows).producer, {table, tokens}, {rows}, {input("dy", {2, 7, 16})}};
  const auto gradients = registry_.get("embedding").gradient(context);
  EXPECT_EQ(graph_.shape(gradients[0]), Shape({65, 16}));
  EXPECT_FALSE(gradients[1].valid());
}
TEST_F(Embedding, RealIndices) {
  const ValueId table = input("table", {65, 16}), tokens = input("tokens", {2, 7});
  EXPECT_EQ(shape_error([&] { embedding(graph_, table, tokens, "tok"); }),
            "[embedding] 'tok': indices wants i32, got 'tokens' (2,7) of f32; add a cast");
}
TEST_F(Embedding, TableOfOneAxis) {
  const ValueId table = input("table", {65}), tokens = input("tokens", {2, 7}, DType::i32);
  EXPECT_EQ(shape_error([&] { embedding(graph_, table, tokens, "tok"); }),
            "[embedding] 'tok': table wants 2 dimensions, got 'table' (65)");
}
TEST_F(Embedding, GradientOfAnotherShape) {
  const ValueId dy = input("dy", {2, 6, 16}), tokens = input("tokens", {2, 7}, DType::i32);
  EXPECT_EQ(shape_error([&] {
              graph_.add("embedding_backward", {dy, tokens}, {{"rows", int64_t{65}}}, "back");
            }),
            "[embedding_backward] 'back': the output gradient has the shape of the indices 'tokens' (2,7) and one axis "
            "more, got 'dy' (2,6,16)");
}

}  // namespace
}  // namespace weft::ops
