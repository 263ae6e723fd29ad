// Constants and layers that are found in the graph of an ONNX model, and what is folded.
#include "weft/quantize/model_graph.h"

#include <gmock/gmock.h>

#include "tests/support/quantizer_rig.h"
#include "weft/base/error.h"

namespace weft::quantize {
namespace {

using ::testing::ElementsAre;

TEST_F(QuantizerTest, NodesThatReadEachOtherAreNoConstants) {
  onnx::Model model = small_model();
  model.graph.nodes[9].inputs[2] = "a";
  model.graph.nodes.push_back(onnx::node_with_output("Identity", {"b"}, "a"));
  model.graph.nodes.push_back(onnx::node_with_output("Identity", {"a"}, "b"));
  EXPECT_FALSE(known_tensor(model.graph, "a"));
  EXPECT_THROW(Quantizer(model, {}, data_, runner_), Error);
}

TEST_F(QuantizerTest, ConstantsOfImpossibleShapesAreNone) {
  onnx::Model model = small_model();
  const auto reshaped_by = [&](const std::vector<int64_t>& dims) {
    Tensor shape(DType::i64, Shape{static_cast<int64_t>(dims.size())});
    std::copy(dims.begin(), dims.end(), shape.data_as<int64_t>());
    model.graph.initializers["shape"] = shape;
    model.graph.nodes = {onnx::node_with_output("Reshape", {"b3x6", "shape"}, "reshaped")};
    return known_tensor(model.graph, "reshaped");
  };
  model.graph.initializers["b3x6"] = random_tensor({6}, 1);
  EXPECT_FALSE(reshaped_by({-2, -3}));
  EXPECT_FALSE(reshaped_by({-1, -1}));
  EXPECT_FALSE(reshaped_by({int64_t{1} << 40, int64_t{1} << 40, -1}));
  ASSERT_TRUE(reshaped_by({2, -1}));
  EXPECT_EQ(reshaped_by({2, -1})->shape(), (Shape{2, 3}));
}

TEST_F(QuantizerTest, BiasesThatAddADimensionAreNotFolded) {
  onnx::Model model = model_of_shared_weights();
  model.graph.initializers["wide"] = random_tensor({1, 1, 8}, 4);
  model.graph.nodes = {onnx::node_with_output("Gemm", {"x", "w", "b1"}, "h"),
                       onnx::node_with_output("Add", {"h", "wide"}, "logits")};
  fold_layers(model.graph);
  EXPECT_THAT(ops_of(model), ElementsAre("Gemm", "Add"));
}

TEST_F(QuantizerTest, BatchNormsByTheBatchsStatisticsAreNotFolded) {
  onnx::Model model = small_model();
  model.graph.nodes[1].attributes["training_mode"].value = int64_t{1};
  fold_layers(model.graph);
  EXPECT_THAT(ops_of(model), testing::Contains("BatchNormalization"));
}

TEST_F(QuantizerTest, WhatSubgraphsOfSubgraphsReadIsKept) {
  onnx::Model model = model_of_shared_weights();
  auto inner = std::make_shared<onnx::OnnxGraph>(), outer = std::make_shared<onnx::OnnxGraph>();
  inner->nodes = {onnx::node_with_output("Add", {"r", "deep"}, "i")};
  inner->outputs = {info("i", {4, 8})};
  OnnxNode within = onnx::node_with_output("If", {"go"}, "o");
  within.attributes["then_branch"].value = std::shared_ptr<const onnx::OnnxGraph>(inner);
  within.attributes["else_branch"].value = std::shared_ptr<const onnx::OnnxGraph>(inner);
  outer->nodes = {within};
  outer->outputs = {info("o", {4, 8})};
  OnnxNode around = onnx::node_with_output("If", {"go"}, "logits");
  around.attributes["then_branch"].value = std::shared_ptr<const onnx::OnnxGraph>(outer);
  around.attributes["else_branch"].value = std::shared_ptr<const onnx::OnnxGraph>(outer);
  Tensor go(DType::boolean, Shape{});
  *go.data_as<uint8_t>() = 1;
  model.graph.initializers["go"] = go;
  model.graph.initializers["deep"] = random_tensor({8}, 5);
  model.graph.nodes[2] = around;
  drop_unread(model.graph);
  EXPECT_TRUE(model.graph.initializers.contains("deep"));
  EXPECT_EQ(model.graph.nodes.size(), 3u);
  EXPECT_EQ(ValueUses(model.graph).readers.at("r"), (std::vector<size_t>{2}));
}

}  // namespace
}  // namespace weft::quantize
