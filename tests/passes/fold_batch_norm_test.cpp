// What the text tests of the pass cannot show: whose memory folded weights are.
#include "weft/passes/fuse/fold_batch_norm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/graph/constant_node.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"

namespace weft::passes {
namespace {

Graph of_batch(const OpRegistry& ops, int64_t batch, const std::string& scale) {
  return parse_graph(fmt::format(R"(graph "g" {{
  batch %x "x" : f32[{0},1,4,4]
  %w = constant_tensor() {{data=<f32[2,1,1,1] 3,-1>}} : f32[2,1,1,1]
  %scale = constant_tensor() {{data=<f32[2] {1}>}} : f32[2]
  %shift = constant_tensor() {{data=<f32[2] 1,0>}} : f32[2]
  %mean = constant_tensor() {{data=<f32[2] 0.5,-3>}} : f32[2]
  %variance = constant_tensor() {{data=<f32[2] 0.75,15.75>}} : f32[2]
  %c = conv2d(%x, %w) : f32[{0},2,4,4]
  %n = batch_norm_inference(%c, %scale, %shift, %mean, %variance) {{epsilon=0.25}} : f32[{0},2,4,4]
  output "y" %n
}}
)",
                                 batch, scale),
                     ops);
}

const float* folded_weights_of(const Graph& graph) {
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id{static_cast<int32_t>(index)};
    if (graph.node_name(id) == "c.folded_weight") return constant_of(graph.node(id))->tensor().data_as<float>();
  }
  return nullptr;
}

TEST(FoldBatchNorm, GraphsOfOneModelShareTheirFoldedWeights) {
  const OpRegistry ops = ops::make_registry();
  FoldedWeights known;
  const Graph two = fold_batch_norm(of_batch(ops, 2, "2,8"), &known);
  const Graph three = fold_batch_norm(of_batch(ops, 3, "2,8"), &known);
  ASSERT_NE(folded_weights_of(two), nullptr);
  EXPECT_EQ(folded_weights_of(two), folded_weights_of(three));
  EXPECT_EQ(folded_weights_of(two)[0], 6);
}

TEST(FoldBatchNorm, OtherFactorsFoldOtherWeights) {
  const OpRegistry ops = ops::make_registry();
  FoldedWeights known;
  const Graph one = fold_batch_norm(of_batch(ops, 2, "2,8"), &known);
  const Graph other = fold_batch_norm(of_batch(ops, 2, "4,8"), &known);
  EXPECT_EQ(folded_weights_of(one)[0], 6);
  EXPECT_EQ(folded_weights_of(other)[0], 12);
  EXPECT_EQ(known.size(), 2u);
}

}  // namespace
}  // namespace weft::passes
