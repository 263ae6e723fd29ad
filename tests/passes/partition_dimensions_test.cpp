// From a step on whole tensors to that of ranks that hold parts of weights along dimensions: graphs in, graphs out, and
// what the ranks compute together.
#include "weft/passes/ranks/partition_dimensions.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/lockstep_ranks.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/graph/text.h"
#include "weft/graph/verify.h"
#include "weft/library/check_op.h"
#include "weft/ops/all.h"

namespace weft::passes {
namespace {

const OpRegistry& known_ops() {
  static const OpRegistry all = ops::make_registry();
  return all;
}

const MeshAxis kTwo{"tensor", 2};

Graph partitioned(const std::string& text, const std::map<std::string, DimensionSplit>& states,
                  const std::set<std::string>& followers = {}, bool splits_sums = false) {
  const Graph graph = parse_graph(text, known_ops());
  DimensionOptions options{.axis = kTwo, .states = states, .followers = followers, .splits_sums = splits_sums};
  options.last_of_forward = NodeId{static_cast<int32_t>(graph.nodes().size()) - 1};
  Graph result = partition_dimensions(graph, options).graph;
  verify(result, "partition_dimensions");
  return result;
}

void expect_is_split_as(const std::string& before, const std::map<std::string, DimensionSplit>& states,
                        const std::set<std::string>& followers, const std::string& after, bool splits_sums = false) {
  EXPECT_EQ(print_graph(partitioned(before, states, followers, splits_sums)),
            print_graph(parse_graph(after, known_ops())));
}

TEST(PartitionDimensions, ALayerByOutputsAndOneByInputsReduceOnce) {
  expect_is_split_as(R"graph(graph "g" {
  batch %x "x" : f32[8,6]
  parameter %up "up" : f32[12,6]
  parameter %bias "bias" : f32[12]
  parameter %down "down" : f32[6,12]
  %wide = matmul(%x, %up) {transpose_b=true} : f32[8,12]
  %biased = add(%wide, %bias) : f32[8,12]
  %active = relu(%biased) : f32[8,12]
  %narrow = matmul(%active, %down) {transpose_b=true} : f32[8,6]
  output "y" %narrow
})graph",
                     {{"up", {0}}, {"down", {1}}}, {"bias"}, R"graph(graph "g" {
  batch %x "x" : f32[8,6]
  parameter %up "up" : f32[6,6] {sharding="split(tensor=2,-) of (12,6)"}
  parameter %bias "bias" : f32[6] {sharding="split(tensor=2) of (12)"}
  parameter %down "down" : f32[6,6] {sharding="split(-,tensor=2) of (6,12)"}
  %wide = matmul(%x, %up) {transpose_b=true} : f32[8,6] {sharding="split(-,tensor=2) of (8,12)"}
  %biased = add(%wide, %bias) : f32[8,6] {sharding="split(-,tensor=2) of (8,12)"}
  %active = relu(%biased) : f32[8,6] {sharding="split(-,tensor=2) of (8,12)"}
  %narrow = matmul(%active, %down) {transpose_b=true} : f32[8,6] {sharding="partial(tensor=2) of (8,6)"}
  %all_reduce/narrow = all_reduce(%narrow) {axis="tensor", reduction="sum"} : f32[8,6]
  output "y" %all_reduce/narrow
})graph");
}

/// Sums of residuals and norms are computed for some of the rows, which the next layer gathers.
TEST(PartitionDimensions, WhatFollowsASumIsSplitByItsRows) {
  const std::string before = R"graph(graph "g" {
  batch %x "x" : f32[8,6]
  parameter %up "up" : f32[12,6]
  parameter %down "down" : f32[6,12]
  parameter %gain "gain" : f32[6]
  parameter %shift "shift" : f32[6]
  %wide = matmul(%x, %up) {transpose_b=true} : f32[8,12]
  %narrow = matmul(%wide, %down) {transpose_b=true} : f32[8,6]
  %sum = add(%x, %narrow) : f32[8,6]
  %normed, %normed.1, %normed.2 = layer_norm(%sum, %gain, %shift) : f32[8,6], f32[8], f32[8]
  %again = matmul(%normed, %up) {transpose_b=true} : f32[8,12]
  %larger = relu(%again) : f32[8,12]
  output "y" %larger
})graph";
  expect_is_split_as(before, {{"up", {0}}, {"down", {1}}}, {}, R"graph(graph "g" {
  batch %x "x" : f32[8,6]
  parameter %up "up" : f32[6,6] {sharding="split(tensor=2,-) of (12,6)"}
  parameter %down "down" : f32[6,6] {sharding="split(-,tensor=2) of (6,12)"}
  parameter %gain "gain" : f32[6]
  parameter %shift "shift" : f32[6]
  %wide = matmul(%x, %up) {transpose_b=true} : f32[8,6] {sharding="split(-,tensor=2) of (8,12)"}
  %narrow = matmul(%wide, %down) {transpose_b=true} : f32[8,6] {sharding="partial(tensor=2) of (8,6)"}
  %x.part = own_part(%x) {axis="tensor", ranks=2} : f32[4,6] {sharding="split(tensor=2,-) of (8,6)"}
  %reduce_scatter/narrow = reduce_scatter(%narrow) {axis="tensor", ranks=2, reduction="sum"} : f32[4,6] {sharding="split(tensor=2,-) of (8,6)"}
  %sum = add(%x.part, %reduce_scatter/narrow) : f32[4,6] {sharding="split(tensor=2,-) of (8,6)"}
  %normed, %normed.1, %normed.2 = layer_norm(%sum, %gain, %shift) : f32[4,6] {sharding="split(tensor=2,-) of (8,6)"}, f32[4] {sharding="split(tensor=2) of (8)"}, f32[4] {sharding="split(tensor=2) of (8)"}
  %all_gather/normed = all_gather(%normed) {axis="tensor", ranks=2} : f32[8,6]
  %again = matmul(%all_gather/normed, %up) {transpose_b=true} : f32[8,6] {sharding="split(-,tensor=2) of (8,12)"}
  %larger = relu(%again) : f32[8,6] {sharding="split(-,tensor=2) of (8,12)"}
  %larger.runs = reshape(%larger) {shape=[1,8,6]} : f32[1,8,6]
  %all_gather/larger = all_gather(%larger.runs) {axis="tensor", ranks=2} : f32[2,8,6]
  %larger.in_order = transpose(%all_gather/larger) {permutation=[1,0,2]} : f32[8,2,6]
  %larger.whole = reshape(%larger.in_order) {shape=[8,12]} : f32[8,12]
  output "y" %larger.whole
})graph",
                     /*splits_sums=*/true);
}

/// Where the first dimension cannot be divided, the next one is.
TEST(PartitionDimensions, ASequenceOfOneSampleIsSplitWithinIt) {
  const Graph graph = partitioned(R"graph(graph "g" {
  batch %tokens "tokens" : i32[1,8]
  parameter %table "table" : f32[10,4]
  parameter %places "places" : f32[8,4]
  %words = embedding(%table, %tokens) : f32[1,8,4]
  %placed = add(%words, %places) : f32[1,8,4]
  output "y" %placed
})graph",
                                  {{"table", {0}}}, {}, true);
  EXPECT_EQ(graph.shape(graph.find_value("placed")), Shape({1, 4, 4}));
}

/// A term of a norm that all ranks have counts as a share of it.
TEST(PartitionDimensions, NormsBecomeOneSumOverTheRanks) {
  expect_is_split_as(R"graph(graph "g" {
  parameter %w "w" : f32[8,4]
  parameter %b "b" : f32[8]
  %one = squared_norm(%w) : f32[]
  %other = squared_norm(%b) : f32[]
  %sum = add(%one, %other) : f32[]
  %norm = sqrt(%sum) : f32[]
  output "norm" %norm
})graph",
                     {{"w", {1}}}, {}, R"graph(graph "g" {
  parameter %w "w" : f32[8,2] {sharding="split(-,tensor=2) of (8,4)"}
  parameter %b "b" : f32[8]
  %one = squared_norm(%w) : f32[] {sharding="partial(tensor=2) of ()"}
  %other = squared_norm(%b) : f32[]
  %other.term = multiply_scalar(%other) {value=0.5} : f32[] {sharding="partial(tensor=2) of ()"}
  %sum = add(%one, %other.term) : f32[] {sharding="partial(tensor=2) of ()"}
  %all_reduce/sum = all_reduce(%sum) {axis="tensor", reduction="sum"} : f32[]
  %norm = sqrt(%all_reduce/sum) : f32[]
  output "norm" %norm
})graph");
}

/// Of what is wanted in parts only a part is computed.
TEST(PartitionDimensions, AGradientOfATableIsThatOfTheRowsOfTheRank) {
  const Graph graph = partitioned(R"graph(graph "g" {
  batch %dy "dy" : f32[5,4]
  batch %tokens "tokens" : i32[5]
  parameter %table "table" : f32[6,4]
  scalar %rate "rate" : f32[]
  %gradient = embedding_backward(%dy, %tokens) {rows=6} : f32[6,4]
  %next = blend_update(%table, %gradient, %rate, %rate) : f32[6,4]
  update "table" %next
})graph",
                                  {{"table", {0}}});
  const Node* const gradient = graph.producer(graph.find_value("gradient"));
  ASSERT_NE(gradient, nullptr);
  EXPECT_EQ(gradient->attributes.integer("rows"), 3);
  EXPECT_EQ(gradient->inputs.size(), 3u) << "its place";
  for (const Node& node : graph.nodes()) EXPECT_NE(node.op->name, kOwnPart);
}

/// What depends on a sum waits until it is complete: parts of it would be put together for its state in its last run
/// only.
TEST(PartitionDimensions, ASumOfWhichAllRanksHaveAllAddsWholeGradients) {
  expect_is_split_as(R"graph(graph "g" {
  batch %dy "dy" : f32[8,6]
  batch %x "x" : f32[8,4]
  parameter %w "w" : f32[12,4]
  state %sum "sum" : f32[6,12]
  scalar %keep "keep" : f32[]
  scalar %take "take" : f32[]
  scalar %complete "complete" : f32[]
  %wide = matmul(%x, %w) {transpose_b=true} : f32[8,12]
  %gradient = matmul(%dy, %wide) {transpose_a=true} : f32[6,12]
  %next = accumulate_update(%sum, %gradient, %keep, %take, %complete) : f32[6,12]
  update "sum" %next
})graph",
                     {{"w", {0}}}, {}, R"graph(graph "g" {
  batch %dy "dy" : f32[8,6]
  batch %x "x" : f32[8,4]
  parameter %w "w" : f32[6,4] {sharding="split(tensor=2,-) of (12,4)"}
  state %sum "sum" : f32[6,12]
  scalar %keep "keep" : f32[]
  scalar %take "take" : f32[]
  scalar %complete "complete" : f32[]
  %wide = matmul(%x, %w) {transpose_b=true} : f32[8,6] {sharding="split(-,tensor=2) of (8,12)"}
  %gradient = matmul(%dy, %wide) {transpose_a=true} : f32[6,6] {sharding="split(-,tensor=2) of (6,12)"}
  %gradient.runs = reshape(%gradient) {shape=[1,6,6]} : f32[1,6,6]
  %all_gather/gradient = all_gather(%gradient.runs) {axis="tensor", ranks=2} : f32[2,6,6]
  %gradient.in_order = transpose(%all_gather/gradient) {permutation=[1,0,2]} : f32[6,2,6]
  %gradient.whole = reshape(%gradient.in_order) {shape=[6,12]} : f32[6,12]
  %next = accumulate_update(%sum, %gradient.whole, %keep, %take, %complete) : f32[6,12]
  update "sum" %next
})graph");
}

TEST(PartitionDimensions, WhatNoRuleSplitsIsGathered) {
  const Graph graph = partitioned(R"graph(graph "g" {
  batch %x "x" : f32[8,6]
  parameter %w "w" : f32[6,6]
  %y = matmul(%x, %w) {transpose_b=true} : f32[8,6]
  %sorted = cumulative_sum(%y) {axis=1} : f32[8,6]
  output "sorted" %sorted
})graph",
                                  {{"w", {0}}});
  EXPECT_EQ(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                          [](const Node& node) { return node.op->name == kAllGather; }),
            1);
}

/// Losses, their gradient and the right answers, where each rank has half of the classes.
class SplitClasses : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Losses, SplitClasses,
                         testing::Values("", " {label_smoothing=0.1}", " {ignore_index=1}",
                                         " {ignore_index=1, label_smoothing=0.2}"));

TEST_P(SplitClasses, GiveWhatOneRankGives) {
  const std::string text = R"graph(graph "g" {
  batch %x "x" : f32[9,5]
  batch %labels "labels" : i32[9]
  batch %weight "weight" : f32[9]
  parameter %head "head" : f32[8,5]
  %logits = matmul(%x, %head) {transpose_b=true} : f32[9,8]
  %losses = cross_entropy(%logits, %labels))graph" +
                           GetParam() + R"graph( : f32[9]
  %correct = count_correct(%logits, %labels) : f32[]
  %gradient = cross_entropy_backward(%weight, %logits, %labels))graph" +
                           GetParam() + R"graph( : f32[9,8]
  output "losses" %losses
  output "correct" %correct
  output "gradient" %gradient
})graph";
  const CpuBackend backend(1);
  test::NamedTensors inputs;
  const Graph whole_graph = parse_graph(text, known_ops());
  for (const GraphInput& input : whole_graph.inputs())
    inputs[input.name] = draw_tensor(whole_graph.type(input.value), {-2, 2}, 4);
  inputs["labels"] = draw_tensor({DType::i32, {9}, {}}, {0, 8}, 4);
  const test::NamedTensors whole = evaluate_graph(whole_graph, inputs, backend);
  const Graph graph = partitioned(text, {{"head", {0}}});
  std::vector<test::NamedTensors> own(2, inputs);
  for (int rank = 0; rank < 2; ++rank)
    own[static_cast<size_t>(rank)]["head"] = part_of(inputs["head"], sharding_of({8, 5}, {0}, kTwo), rank);
  for (const test::NamedTensors& results : test::evaluate_on_ranks(graph, own, backend))
    for (const auto& [name, wanted] : whole) {
      const Tensor& got = results.at(name);
      ASSERT_EQ(got.type(), wanted.type());
      for (int64_t i = 0; i < wanted.elements(); ++i)
        EXPECT_NEAR(got.data_as<float>()[i], wanted.data_as<float>()[i], 2e-6) << name << " " << i;
    }
}

}  // namespace
}  // namespace weft::passes
