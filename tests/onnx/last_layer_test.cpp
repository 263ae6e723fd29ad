#include "weft/onnx/train/last_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/onnx/model_support.h"
#include "tests/support/error_of.h"

namespace weft::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// x [N,4] -> hidden [N,5] -> logits [N,3] -> probabilities
Model classifier() {
  Model model = make_model({tensor_info("x", {open("batch"), fixed(4)})},
                           {make_node("MatMul", {"x", "w1"}, {"hidden"}), make_node("Relu", {"hidden"}, {"active"}),
                            make_node("Gemm", {"active", "w2", "b2"}, {"logits"}, {{"transB", int64_t{1}}}),
                            make_node("Softmax", {"logits"}, {"probabilities"})},
                           {tensor_info("probabilities", {open("batch"), fixed(3)})});
  model.graph.initializers["w1"] = Tensor(DType::f32, Shape{4, 5});
  model.graph.initializers["w2"] = Tensor(DType::f32, Shape{3, 5});
  model.graph.initializers["b2"] = Tensor(DType::f32, Shape{3});
  return model;
}

Shape shape_of(const Model& model, const std::string& name) {
  return model.graph.initializers.at(name).tensor()->shape();
}

TEST(LastLayer, TheSoftmaxAtTheEndIsLeftOut) {
  Model model = classifier();
  drop_last_softmax(model);
  EXPECT_EQ(model.graph.outputs[0].name, "logits");
}

TEST(LastLayer, GetsAsManyOutputsAsThereAreClasses) {
  Model model = classifier();
  drop_last_softmax(model);
  const FreshLayer fresh = with_classes(model, 7);
  EXPECT_THAT(fresh.parameters, ElementsAre("b2", "w2"));
  EXPECT_EQ(fresh.inputs, 5);
  EXPECT_EQ(shape_of(model, "w2"), (Shape{7, 5}));
  EXPECT_EQ(shape_of(model, "b2"), (Shape{7}));
  EXPECT_EQ(shape_of(model, "w1"), (Shape{4, 5}));
}

TEST(LastLayer, StaysWhereTheClassesAreAsMany) {
  Model model = classifier();
  drop_last_softmax(model);
  EXPECT_TRUE(with_classes(model, 3).parameters.empty());
  EXPECT_EQ(shape_of(model, "w2"), (Shape{3, 5}));
}

TEST(LastLayer, OfAProductAndASumIsFoundThroughWhatIsBehindIt) {
  Model model = classifier();
  model.graph.nodes[2] = make_node("MatMul", {"active", "w2"}, {"product"});
  model.graph.initializers["w2"] = Tensor(DType::f32, Shape{5, 3});
  model.graph.nodes[3] = make_node("Add", {"product", "b2"}, {"sum"});
  model.graph.nodes.push_back(make_node("Identity", {"sum"}, {"probabilities"}));
  EXPECT_THAT(with_classes(model, 2).parameters, ElementsAre("b2", "w2"));
  EXPECT_EQ(shape_of(model, "w2"), (Shape{5, 2}));
  EXPECT_EQ(shape_of(model, "b2"), (Shape{2}));
}

TEST(LastLayer, AReshapeBehindItThatStatesTheClassesStatesTheNewOnes) {
  Model model = make_model({tensor_info("x", {open("batch"), fixed(4), fixed(2), fixed(2)})},
                           {make_node("Conv", {"x", "w", "b"}, {"pixels"}),
                            make_node("Transpose", {"pixels"}, {"rows"}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}}),
                            make_node("Reshape", {"rows", "shape"}, {"logits"})},
                           {tensor_info("logits", {open("pixels"), fixed(3)})});
  model.graph.initializers["w"] = Tensor(DType::f32, Shape{3, 4, 1, 1});
  model.graph.initializers["b"] = Tensor(DType::f32, Shape{3});
  Tensor shape(DType::i64, Shape{2});
  shape.data_as<int64_t>()[0] = -1;
  shape.data_as<int64_t>()[1] = 3;
  model.graph.initializers["shape"] = std::move(shape);
  EXPECT_THAT(with_classes(model, 7).parameters, ElementsAre("b", "w"));
  EXPECT_EQ(shape_of(model, "w"), (Shape{7, 4, 1, 1}));
  const Tensor& stated = *model.graph.initializers.at(model.graph.nodes[2].inputs[1]).tensor();
  EXPECT_EQ(stated.data_as<int64_t>()[0], -1);
  EXPECT_EQ(stated.data_as<int64_t>()[1], 7);
}

TEST(LastLayer, AModelThatEndsOtherwiseIsRefused) {
  Model model = classifier();
  model.graph.nodes.push_back(make_node("Concat", {"logits", "logits"}, {"twice"}, {{"axis", int64_t{1}}}));
  model.graph.outputs[0] = tensor_info("twice", {open("batch"), fixed(6)});
  EXPECT_THAT(test::error_of([&] { with_classes(model, 7); }), HasSubstr("does not end with a layer"));
}

}  // namespace
}  // namespace weft::onnx
