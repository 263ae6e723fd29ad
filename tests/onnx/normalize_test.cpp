#include "weft/onnx/lower/normalize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/onnx/model_support.h"
#include "tests/support/error_of.h"

namespace weft::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Model with_nodes(std::vector<OnnxNode> nodes) {
  return make_model({tensor_info("x", {open("batch"), fixed(4)})}, std::move(nodes),
                    {tensor_info("y", {open("batch"), fixed(2)})});
}

OnnxNode constant(const std::string& name) {
  return make_node("Constant", {}, {name}, {{"value", HostValue(Tensor(DType::f32, Shape{4, 2}))}});
}

std::vector<std::string> ops_of(const Model& model) {
  std::vector<std::string> names;
  for (const OnnxNode& node : model.graph.nodes) names.push_back(node.op);
  return names;
}

TEST(Normalize, WhatAConstantHoldsBecomesAnInitializer) {
  const Model model = normalize(with_nodes({constant("w"), make_node("MatMul", {"x", "w"}, {"y"})}));
  EXPECT_THAT(ops_of(model), ElementsAre("MatMul"));
  EXPECT_EQ(model.graph.initializers.at("w").tensor()->shape(), (Shape{4, 2}));
}

TEST(Normalize, WhatReadsAnIdentityOfATensorReadsTheTensor) {
  const Model model =
      normalize(with_nodes({constant("w"), make_node("Identity", {"w"}, {"same"}),
                            make_node("Identity", {"same"}, {"again"}), make_node("MatMul", {"x", "again"}, {"y"})}));
  EXPECT_THAT(ops_of(model), ElementsAre("MatMul"));
  EXPECT_THAT(model.graph.nodes[0].inputs, ElementsAre("x", "w"));
}

TEST(Normalize, AnIdentityThatIsAnOutputStays) {
  Model source =
      with_nodes({constant("w"), make_node("Identity", {"w"}, {"same"}), make_node("MatMul", {"x", "same"}, {"y"})});
  source.graph.outputs.push_back(tensor_info("same", {fixed(4), fixed(2)}));
  const Model model = normalize(std::move(source));
  EXPECT_THAT(ops_of(model), ElementsAre("Identity", "MatMul"));
  EXPECT_THAT(model.graph.nodes[1].inputs, ElementsAre("x", "w"));
}

TEST(Normalize, AnIdentityThatASubgraphReadsStays) {
  auto body = std::make_shared<OnnxGraph>();
  body->nodes = {make_node("Relu", {"same"}, {"inner"})};
  body->outputs = {tensor_info("inner", {})};
  const std::shared_ptr<const OnnxGraph> branch = body;
  const Model model =
      normalize(with_nodes({constant("w"), make_node("Identity", {"w"}, {"same"}),
                            make_node("If", {"x"}, {"y"}, {{"then_branch", branch}, {"else_branch", branch}})}));
  EXPECT_THAT(ops_of(model), ElementsAre("Identity", "If"));
}

TEST(Normalize, WeightsOfFunctionsAreFound) {
  Model source = with_nodes({make_node("Layer", {"x"}, {"y"})});
  source.graph.nodes[0].domain = "own";
  Function layer{"Layer", "own", "", {"a"}, {"b"}, {}, {constant("w"), make_node("MatMul", {"a", "w"}, {"b"})}, {}};
  layer.opsets[""] = 20;
  source.functions = {layer};
  const Model model = normalize(std::move(source));
  EXPECT_THAT(ops_of(model), ElementsAre("MatMul"));
  EXPECT_EQ(model.graph.initializers.size(), 1U);
  EXPECT_TRUE(model.functions.empty());
}

TEST(Normalize, OperatorsOfTheFutureAreRefused) {
  Model model = with_nodes({make_node("Identity", {"x"}, {"y"})});
  model.opsets[""] = 99;
  EXPECT_THAT(test::error_of([&] { normalize(model); }, ErrorKind::usage),
              HasSubstr("has operators of version 99, and weft knows those up to 28; export it with version 28"));
}

TEST(Normalize, FunctionsOfTheFutureAreRefused) {
  Model model = with_nodes({make_node("Identity", {"x"}, {"y"})});
  Function function;
  function.name = "Layer";
  function.opsets[""] = 99;
  model.functions = {function};
  EXPECT_THAT(test::error_of([&] { normalize(model); }, ErrorKind::usage), HasSubstr("operators of version 99"));
}

TEST(Normalize, AnInputOfATypeThatWeftHasNotIsRefused) {
  Model model = with_nodes({make_node("Identity", {"x"}, {"y"})});
  model.graph.inputs[0].dtype.reset();
  model.graph.inputs[0].unsupported = "complex64";
  EXPECT_THAT(test::error_of([&] { normalize(model); }, ErrorKind::usage),
              HasSubstr("the input 'x' is complex64, a type that weft has not"));
}

TEST(Normalize, TwoNodesThatWriteOneValueAreRefused) {
  EXPECT_THAT(test::error_of(
                  [] {
                    normalize(with_nodes({make_node("Abs", {"x"}, {"y"}), make_node("Neg", {"x"}, {"y"})}));
                  },
                  ErrorKind::data),
              HasSubstr("[Neg 'y'] writes 'y', which [Abs 'y'] writes already"));
}

TEST(Normalize, ANodeThatWritesAnInputIsRefused) {
  EXPECT_THAT(test::error_of([] { normalize(with_nodes({make_node("Abs", {"x"}, {"x"})})); }, ErrorKind::data),
              HasSubstr("[Abs 'x'] writes 'x', which is an input or a tensor of the file already"));
}

}  // namespace
}  // namespace weft::onnx
