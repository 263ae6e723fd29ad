#include "weft/onnx/train/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/onnx/model_support.h"
#include "weft/tensor/element.h"

namespace weft::onnx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kFloat = 1, kFloat16 = 10, kDouble = 11;

Model model_of(std::vector<OnnxNode> nodes, DType dtype = DType::f32) {
  return make_model({tensor_info("x", {open("batch"), fixed(2)}, dtype)}, std::move(nodes),
                    {tensor_info("y", {open("batch"), fixed(2)}, dtype)});
}

Tensor halves() {
  Tensor tensor(DType::f16, Shape{2, 2});
  for (int64_t index = 0; index < 4; ++index) store_element(DType::f16, tensor.data(), index, 0.5);
  return tensor;
}

TEST(WidenReals, HalvesBecomeF32EverywhereInAModel) {
  Model model = model_of({make_node("MatMul", {"x", "w"}, {"a"}), make_node("Cast", {"a"}, {"y"}, {{"to", kFloat16}})},
                         DType::f16);
  model.graph.initializers["w"] = halves();
  widen_reals(model);
  EXPECT_EQ(model.graph.inputs[0].dtype, DType::f32);
  EXPECT_EQ(model.graph.outputs[0].dtype, DType::f32);
  EXPECT_EQ(std::get<int64_t>(model.graph.nodes[1].attributes.at("to").value), kFloat);
  const Tensor& weight = *model.graph.initializers.at("w").tensor();
  ASSERT_EQ(weight.dtype(), DType::f32);
  EXPECT_EQ(weight.data_as<float>()[3], 0.5f);
}

TEST(WidenReals, ACastOfAWeightGoes) {
  Model model =
      model_of({make_node("Cast", {"w"}, {"wide"}, {{"to", kFloat}}), make_node("MatMul", {"x", "wide"}, {"y"})});
  model.graph.initializers["w"] = halves();
  widen_reals(model);
  ASSERT_EQ(model.graph.nodes.size(), 1U);
  EXPECT_THAT(model.graph.nodes[0].inputs, ElementsAre("x", "w"));
}

TEST(WidenReals, SizesThatAModelComputesInF64Stay) {
  Model model = model_of({make_node("Cast", {"x"}, {"y"}, {{"to", kDouble}})});
  model.graph.initializers["one"] = Tensor(DType::f64, Shape{});
  widen_reals(model);
  EXPECT_EQ(std::get<int64_t>(model.graph.nodes[0].attributes.at("to").value), kDouble);
  EXPECT_EQ(model.graph.initializers.at("one").tensor()->dtype(), DType::f64);
}

TEST(WidenReals, WeightsOfF64BecomeF32) {
  Model model = model_of({make_node("MatMul", {"x", "w"}, {"y"})}, DType::f64);
  model.graph.initializers["w"] = Tensor(DType::f64, Shape{2, 2});
  widen_reals(model);
  EXPECT_EQ(model.graph.inputs[0].dtype, DType::f32);
  EXPECT_EQ(model.graph.initializers.at("w").tensor()->dtype(), DType::f32);
}

/// x w + b + mask
Model masked_layer() {
  Model model = model_of({make_node("MatMul", {"x", "w"}, {"product"}), make_node("Add", {"b", "product"}, {"sum"}),
                          make_node("Add", {"sum", "mask"}, {"y"})});
  model.graph.initializers["w"] = Tensor(DType::f32, Shape{2, 2});
  model.graph.initializers["b"] = Tensor(DType::f32, Shape{2});
  model.graph.initializers["mask"] = Tensor(DType::f32, Shape{2, 2});
  model.graph.initializers["factor"] = Tensor(DType::f32, Shape{});
  model.graph.initializers["indices"] = Tensor(DType::i64, Shape{2});
  return model;
}

TEST(FindParameters, StoredTensorsOfRealsAreParameters) {
  EXPECT_THAT(find_parameters(masked_layer().graph, {"w", "b", "mask", "factor", "indices"}),
              ElementsAre("b", "mask", "w"));
}

TEST(FindParameters, AConstantIsOneWhereALayerReadsIt) {
  EXPECT_THAT(find_parameters(masked_layer().graph, {}), ElementsAre("b", "w"));
}

TEST(FindParameters, WhatDecidesSizesIsNone) {
  Model model = model_of({make_node("Resize", {"x", "", "scales"}, {"y"})});
  model.graph.initializers["scales"] = Tensor(DType::f32, Shape{2});
  EXPECT_THAT(find_parameters(model.graph, {"scales"}), IsEmpty());
}

TEST(TensorsInWords, CountsByType) {
  EXPECT_EQ(tensors_in_words(masked_layer().graph), "3 of f32, 1 of f32[], 1 of i64");
  EXPECT_EQ(tensors_in_words({}), "none");
}

}  // namespace
}  // namespace weft::onnx
