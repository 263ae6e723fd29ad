#include "ops_fixture.h"

namespace weft::ops {
namespace {

using Attention = OpsTest;

TEST_F(Attention, GivesOneRowPerQuery) {
  const ValueId q = input("q", {2, 4, 3, 8}), k = input("k", {2, 4, 5, 8}), v = input("v", {2, 4, 5, 8});
  EXPECT_EQ(graph_.shape(attention(graph_, q, k, v, true, "attn")), Shape({2, 4, 3, 8}));
}
TEST_F(Attention, MasksOnlyWhereCausal) {
  const ValueId q = input("q", {2, 4, 3, 8});
  const auto has_mask = [](const Graph& graph) {
    for (const Node& node : graph.nodes())
      if (node.op->name == "causal_mask") return true;
    return false;
  };
  attention(graph_, q, q, q, false);
  EXPECT_FALSE(has_mask(graph_));
  attention(graph_, q, q, q, true);
  EXPECT_TRUE(has_mask(graph_));
}
TEST_F(Attention, GradientOfTheMaskIsAMaskOfZeros) {
  const ValueId scores = input("scores", {2, 3, 3}), masked = graph_.add("causal_mask", {scores});
  GradContext context{graph_, graph_.value(masked).producer, {scores}, {masked}, {input("dy", {2, 3, 3})}};
  const ValueId gradient = registry_.get("causal_mask").gradient(context).front();
  EXPECT_EQ(graph_.producer(gradient)->op->name, "causal_mask");
  EXPECT_EQ(graph_.producer(gradient)->attributes.real("value"), 0.0);
}
TEST_F(Attention, WidthsDiffer) {
  const ValueId q = input("q", {2, 4, 3, 8}), k = input("k", {2, 4, 5, 16});
  EXPECT_EQ(shape_error([&] { attention(graph_, q, k, k, false, "attn"); }),
            "[attention] 'attn': wants q (batch,heads,queries,width) and k and v (batch,heads,keys,width), got 'q' "
            "(2,4,3,8), 'k' (2,4,5,16) and 'k' (2,4,5,16)");
}
TEST_F(Attention, MoreQueriesThanKeys) {
  const ValueId scores = input("scores", {2, 5, 3});
  EXPECT_EQ(
      shape_error([&] { graph_.add("causal_mask", {scores}, {}, "mask"); }),
      "[causal_mask] 'mask': 'scores' (2,5,3) has 5 queries for 3 keys: the first queries would see nothing; give "
      "as many keys");
}
TEST_F(Attention, MaskOfAVector) {
  const ValueId scores = input("scores", {5});
  EXPECT_EQ(shape_error([&] { graph_.add("causal_mask", {scores}, {}, "mask"); }),
            "[causal_mask] 'mask': scores want 2 or more dimensions (.., queries, keys), got 'scores' (5)");
}

TEST_F(Attention, CachesHaveRoomForTheNewTokens) {
  const ValueId q = input("q", {1, 2, 5, 8}), keys = input("keys", {1, 2, 4, 8});
  const ValueId position = graph_.add_input(InputKind::scalar, "position", {DType::i64, {}, {}});
  EXPECT_EQ(
      shape_error([&] { cached_attention(graph_, q, q, q, keys, keys, position, "mixed"); }),
      "[cached_attention] 'mixed': 'q' (1,2,5,8) wants caches of as many samples and heads and of its width, with "
      "room for 5 rows or more, got 'keys' (1,2,4,8)");
}

}  // namespace
}  // namespace weft::ops
