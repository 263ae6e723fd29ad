#include "weft/engine/onnx_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/onnx/model_support.h"
#include "tests/support/error_of.h"
#include "weft/library/library.h"

namespace weft::engine {
namespace {

using onnx::fixed;
using onnx::HostValue;
using onnx::make_model;
using onnx::make_node;
using onnx::open;
using onnx::reals;
using onnx::tensor_info;
using onnx::wholes;
using testing::ElementsAre;
using testing::HasSubstr;

class Session : public testing::Test {
 protected:
  const Library library_ = standard_library();
  const std::unique_ptr<Device> device_ = library_.device.make({.threads = 1, .kernels = library_.kernels});

  OnnxSession session(onnx::Model model, SessionOptions options = {}) const {
    return OnnxSession(std::move(model), library_.ops, *device_, std::move(options));
  }
  static std::vector<float> values_of(const HostValue& value) {
    const Tensor& tensor = *value.tensor();
    return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements()};
  }
};

onnx::Model twice() {
  onnx::Model model = make_model({tensor_info("x", {open("batch"), fixed(2)})}, {make_node("Add", {"x", "x"}, {"y"})},
                                 {tensor_info("y", {open("batch"), fixed(2)})});
  return model;
}

TEST_F(Session, OneModelServesEveryBatch) {
  OnnxSession two = session(twice());
  EXPECT_THAT(values_of(two.run({{"x", reals({1, 2}, {1, 2})}}).at("y")), ElementsAre(2, 4));
  EXPECT_THAT(values_of(two.run({{"x", reals({2, 2}, {1, 2, 3, 4})}}).at("y")), ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(two.plans(), 2U);
}

TEST_F(Session, PlansAreKeptForTheNextRunUpToTheirNumber) {
  int made = 0;
  SessionOptions options;
  options.most_plans = 2;
  options.on_plan = [&](const PlanCost&) { ++made; };
  OnnxSession two = session(twice(), options);
  for (const int64_t batch : {1, 2, 1, 2, 3, 3, 1})
    two.run({{"x", reals({batch, 2}, std::vector<float>(static_cast<size_t>(2 * batch), 1))}});
  EXPECT_EQ(made, 4);  // 1, 2, 3, and 1 again, which made room for 3
  EXPECT_EQ(two.plans(), 2U);
}

TEST_F(Session, NumbersThatDecideAShapeAreOfThePlansKey) {
  OnnxSession reshaped =
      session(make_model({tensor_info("x", {open("n")}), tensor_info("shape", {fixed(2)}, DType::i64)},
                         {make_node("Reshape", {"x", "shape"}, {"y"})}, {tensor_info("y", {})}));
  const auto shape_of = [&](const std::vector<int64_t>& shape) {
    return reshaped.run({{"x", reals({4}, {1, 2, 3, 4})}, {"shape", wholes({2}, shape)}}).at("y").tensor()->shape();
  };
  EXPECT_EQ(shape_of({2, 2}), (Shape{2, 2}));
  EXPECT_EQ(shape_of({4, -1}), (Shape{4, 1}));
  EXPECT_EQ(shape_of({2, 2}), (Shape{2, 2}));
  EXPECT_EQ(reshaped.plans(), 2U);
}

TEST_F(Session, WhatOnlyARunKnowsCutsTheModel) {
  // The sum of x says how often x is repeated.
  OnnxSession tiled = session(
      make_model({tensor_info("x", {fixed(2)})},
                 {make_node("ReduceSum", {"x"}, {"sum"}), make_node("Cast", {"sum"}, {"times"}, {{"to", int64_t{7}}}),
                  make_node("Tile", {"x", "times"}, {"tiled"}), make_node("Neg", {"tiled"}, {"y"})},
                 {tensor_info("y", {open("n")})}));
  EXPECT_THAT(values_of(tiled.run({{"x", reals({2}, {1, 1})}}).at("y")), ElementsAre(-1, -1, -1, -1));
  EXPECT_THAT(values_of(tiled.run({{"x", reals({2}, {0, 1})}}).at("y")), ElementsAre(0, -1));
}

TEST_F(Session, ABranchThatARunDecidesIsTaken) {
  auto yes = std::make_shared<onnx::OnnxGraph>(), no = std::make_shared<onnx::OnnxGraph>();
  yes->nodes = {make_node("Neg", {"x"}, {"then"})};
  yes->outputs = {tensor_info("then", {})};
  no->nodes = {make_node("Add", {"x", "x"}, {"else"})};
  no->outputs = {tensor_info("else", {})};
  OnnxSession branch = session(make_model({tensor_info("x", {fixed(2)}), tensor_info("c", {}, DType::boolean)},
                                          {make_node("If", {"c"}, {"y"},
                                                     {{"then_branch", std::shared_ptr<const onnx::OnnxGraph>(yes)},
                                                      {"else_branch", std::shared_ptr<const onnx::OnnxGraph>(no)}})},
                                          {tensor_info("y", {fixed(2)})}));
  Tensor condition(DType::boolean, Shape{});
  EXPECT_THAT(values_of(branch.run({{"x", reals({2}, {1, 2})}, {"c", condition.clone()}}).at("y")), ElementsAre(2, 4));
  *condition.data_as<uint8_t>() = 1;
  EXPECT_THAT(values_of(branch.run({{"x", reals({2}, {1, 2})}, {"c", condition}}).at("y")), ElementsAre(-1, -2));
}

TEST_F(Session, ALoopRunsUntilItsBodySaysSo) {
  // Doubles x until it is above 20.
  auto body = std::make_shared<onnx::OnnxGraph>();
  body->inputs = {tensor_info("turn", {}, DType::i64), tensor_info("goes", {}, DType::boolean), tensor_info("v", {})};
  body->initializers["limit"] = reals({}, {20});
  body->nodes = {make_node("Add", {"v", "v"}, {"doubled"}), make_node("Less", {"doubled", "limit"}, {"on"})};
  body->outputs = {tensor_info("on", {}, DType::boolean), tensor_info("doubled", {})};
  onnx::Model model =
      make_model({tensor_info("x", {})},
                 {make_node("Loop", {"", "go", "x"}, {"y"}, {{"body", std::shared_ptr<const onnx::OnnxGraph>(body)}})},
                 {tensor_info("y", {})});
  Tensor go(DType::boolean, Shape{});
  *go.data_as<uint8_t>() = 1;
  model.graph.initializers["go"] = go;
  OnnxSession loop = session(model);
  EXPECT_THAT(values_of(loop.run({{"x", reals({}, {3})}}).at("y")), ElementsAre(24));
}

/// y = x, `turns` times through the body, which carries one value.
onnx::OnnxNode loop_of(const std::shared_ptr<onnx::OnnxGraph>& body, const std::string& turns, const std::string& x,
                       const std::string& y) {
  return make_node("Loop", {turns, "", x}, {y}, {{"body", std::shared_ptr<const onnx::OnnxGraph>(body)}});
}

TEST_F(Session, LoopsWithinLoopsDoNotMultiplyInTheGraph) {
  // 500 turns of 100 turns each add 1; the graph of all of it would have 50,000 nodes.
  auto inner = std::make_shared<onnx::OnnxGraph>(), outer = std::make_shared<onnx::OnnxGraph>();
  inner->inputs = {tensor_info("i", {}, DType::i64), tensor_info("c", {}, DType::boolean), tensor_info("v", {})};
  inner->nodes = {make_node("Add", {"v", "one"}, {"w"})};
  inner->outputs = {tensor_info("c", {}, DType::boolean), tensor_info("w", {})};
  outer->inputs = {tensor_info("j", {}, DType::i64), tensor_info("d", {}, DType::boolean), tensor_info("a", {})};
  outer->nodes = {loop_of(inner, "few", "a", "b")};
  outer->outputs = {tensor_info("d", {}, DType::boolean), tensor_info("b", {})};
  onnx::Model model = make_model({tensor_info("x", {})}, {loop_of(outer, "many", "x", "y")}, {tensor_info("y", {})});
  model.graph.initializers = {{"one", reals({}, {1})}, {"few", wholes({}, {100})}, {"many", wholes({}, {500})}};
  size_t most = 0;
  SessionOptions options;
  options.on_plan = [&](const PlanCost& cost) { most = std::max(most, cost.nodes); };
  OnnxSession nested = session(model, options);
  EXPECT_THAT(values_of(nested.run({{"x", reals({}, {3})}}).at("y")), ElementsAre(50003));
  EXPECT_LT(most, 1000U);
}

TEST_F(Session, ALoopWhoseBodyReadsNoTurnIsRefused) {
  for (const size_t inputs : {0, 1}) {
    auto body = std::make_shared<onnx::OnnxGraph>();
    if (inputs == 1) body->inputs = {tensor_info("i", {}, DType::i64)};
    body->nodes = {make_node("Neg", {"x"}, {"w"})};
    body->outputs = {tensor_info("go", {}, DType::boolean)};
    onnx::Model model =
        make_model({tensor_info("x", {})},
                   {make_node("Loop", {"turns", "go"}, {}, {{"body", std::shared_ptr<const onnx::OnnxGraph>(body)}}),
                    make_node("Neg", {"x"}, {"y"})},
                   {tensor_info("y", {})});
    Tensor go(DType::boolean, Shape{});
    *go.data_as<uint8_t>() = 1;
    model.graph.initializers = {{"turns", wholes({}, {2})}, {"go", go}};
    OnnxSession damaged = session(model);
    EXPECT_THAT(test::error_of(
                    [&] {
                      damaged.run({{"x", reals({}, {3})}});
                    },
                    ErrorKind::data),
                HasSubstr("its body has " + std::to_string(inputs) + " inputs"));
  }
}

TEST_F(Session, AnInputThatIsMissingUnknownOrOfAnotherShapeIsNamed) {
  OnnxSession two = session(twice());
  EXPECT_THAT(test::error_of([&] { two.run({}); }), HasSubstr("'test.onnx': the input 'x' (f32[batch,2]) is missing"));
  EXPECT_THAT(test::error_of([&] {
                two.run({{"x", reals({1, 2}, {1, 2})}, {"xs", reals({1}, {1})}});
              }),
              HasSubstr("has no input 'xs'; did you mean 'x'?"));
  EXPECT_THAT(test::error_of([&] {
                two.run({{"x", reals({1, 3}, {1, 2, 3})}});
              }),
              HasSubstr("the input 'x' is f32[1,3], but the model wants f32[batch,2]"));
  EXPECT_THAT(test::error_of([&] {
                two.run({{"x", wholes({1, 2}, {1, 2})}});
              }),
              HasSubstr("the input 'x' is i64[1,2], but the model wants f32[batch,2]"));
}

TEST_F(Session, SymbolsThatDoNotAgreeAreNamed) {
  OnnxSession sum = session(make_model({tensor_info("a", {open("n")}), tensor_info("b", {open("n")})},
                                       {make_node("Add", {"a", "b"}, {"y"})}, {tensor_info("y", {open("n")})}));
  EXPECT_THAT(test::error_of([&] {
                sum.run({{"a", reals({2}, {1, 2})}, {"b", reals({3}, {1, 2, 3})}});
              }),
              HasSubstr("'n' is 2 in another input"));
}

TEST_F(Session, AllOperatorsThatWeftHasNotAreListedAtOnce) {
  onnx::Model model = twice();
  model.graph.nodes = {make_node("Foo", {"x"}, {"a"}), make_node("Bar", {"a"}, {"b"}), make_node("Foo", {"b"}, {"y"})};
  const std::string message = test::error_of([&] { session(model); });
  EXPECT_THAT(message, HasSubstr("Bar (1): 'b'"));
  EXPECT_THAT(message, HasSubstr("Foo (2): 'a', 'y'"));
}

TEST_F(Session, ANodeThatReadsWhatNothingComputesIsNamed) {
  onnx::Model model = twice();
  model.graph.nodes = {make_node("Add", {"x", "ghost"}, {"y"})};
  OnnxSession damaged = session(model);
  EXPECT_THAT(test::error_of([&] {
                damaged.run({{"x", reals({1, 2}, {1, 2})}});
              }),
              HasSubstr("[Add 'y'] reads 'ghost', which nothing before it computes"));
}

TEST_F(Session, OtherSequencesOfTheSameShapeGiveOtherResults) {
  onnx::Model model = twice();
  model.graph.inputs = {tensor_info("x", {fixed(2)})};
  model.graph.inputs[0].kind = onnx::ValueInfo::Kind::sequence;
  model.graph.initializers["first"] = wholes({}, {0});
  model.graph.nodes = {make_node("SequenceAt", {"x", "first"}, {"a"}), make_node("Add", {"a", "a"}, {"y"})};
  OnnxSession sequence = session(model);
  for (const float number : {1.0F, 5.0F, 1.0F}) {
    const std::vector<HostValue> parts = {reals({2}, {number, 2}), reals({2}, {0, 0})};
    EXPECT_THAT(values_of(sequence.run({{"x", HostValue(parts)}}).at("y")), ElementsAre(2 * number, 4));
  }
}

TEST_F(Session, FunctionsOfTheModelAreExpanded) {
  onnx::Model model = twice();
  onnx::Function function;
  function.name = "Twice";
  function.domain = "own";
  function.inputs = {"v"};
  function.outputs = {"w"};
  function.nodes = {make_node("Add", {"v", "v"}, {"inner"}), make_node("Identity", {"inner"}, {"w"})};
  model.functions = {function};
  model.opsets["own"] = 1;
  onnx::OnnxNode call = make_node("Twice", {"x"}, {"a"}), again = make_node("Twice", {"a"}, {"y"});
  call.domain = again.domain = "own";
  model.graph.nodes = {call, again};
  OnnxSession twice_twice = session(model);
  EXPECT_THAT(values_of(twice_twice.run({{"x", reals({1, 2}, {1, 2})}}).at("y")), ElementsAre(4, 8));
}

TEST_F(Session, FunctionsThatBecomeMoreNodesThanAnyModelHasAreRefused) {
  // Each calls the next one twice, 40 deep: 2^40 nodes.
  onnx::Model model = twice();
  const auto call = [](int level, const std::string& from, const std::string& to) {
    onnx::OnnxNode node = make_node("f" + std::to_string(level), {from}, {to});
    node.domain = "own";
    return node;
  };
  for (int level = 0; level < 40; ++level) {
    onnx::Function function;
    function.name = "f" + std::to_string(level);
    function.domain = "own";
    function.inputs = {"v"};
    function.outputs = {"w"};
    function.nodes = {call(level + 1, "v", "half"), call(level + 1, "half", "w")};
    if (level == 39) function.nodes = {make_node("Neg", {"v"}, {"w"})};
    model.functions.push_back(function);
  }
  model.graph.nodes = {call(0, "x", "y")};
  EXPECT_THAT(test::error_of([&] { session(model); }, ErrorKind::data), HasSubstr("more than 1000000 nodes"));
}

TEST_F(Session, FunctionsThatCallEachOtherAreRefused) {
  onnx::Model model = twice();
  onnx::Function function;
  function.name = "Again";
  function.domain = "own";
  function.inputs = {"v"};
  function.outputs = {"w"};
  onnx::OnnxNode inner = make_node("Again", {"v"}, {"w"});
  inner.domain = "own";
  function.nodes = {inner};
  model.functions = {function};
  onnx::OnnxNode call = make_node("Again", {"x"}, {"y"});
  call.domain = "own";
  model.graph.nodes = {call};
  EXPECT_THAT(test::error_of([&] { session(model); }), HasSubstr("in a circle"));
}

TEST_F(Session, ConvolutionsOfIntegersOverThreeAxesAreExactInEveryPrecision) {
  const int64_t channels = 16, filters = 16, size = 6, kernel = 3, out = size - kernel + 1;
  Tensor x(DType::u8, Shape{1, channels, size, size, size}),
      w(DType::i8, Shape{filters, channels, kernel, kernel, kernel});
  for (int64_t at = 0; at < x.elements(); ++at) x.data_as<uint8_t>()[at] = static_cast<uint8_t>(at * 37 % 251);
  for (int64_t at = 0; at < w.elements(); ++at) w.data_as<int8_t>()[at] = static_cast<int8_t>(at * 53 % 255 - 127);
  onnx::Model model = make_model({tensor_info("x", {}, DType::u8)}, {make_node("ConvInteger", {"x", "w"}, {"y"})},
                                 {tensor_info("y", {}, DType::i32)});
  model.graph.inputs[0].shape.reset();
  model.graph.initializers["w"] = w;
  std::vector<int32_t> expected;
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t place = 0; place < out * out * out; ++place) {
      int32_t sum = 0;
      for (int64_t tap = 0; tap < channels * kernel * kernel * kernel; ++tap) {
        const int64_t c = tap / 27, d = place / (out * out) + tap / 9 % 3, h = place / out % out + tap / 3 % 3,
                      v = place % out + tap % 3;
        sum += int32_t{x.data_as<uint8_t>()[((c * size + d) * size + h) * size + v]} *
               int32_t{w.data_as<int8_t>()[f * channels * 27 + tap]};
      }
      expected.push_back(sum);
    }
  for (const DType precision : {DType::f32, DType::bf16}) {
    if (precision != DType::f32 && !device_->computes_fast(precision)) continue;
    SessionOptions options;
    options.compile.precision.dtype = precision;
    const auto outputs = session(model, options).run({{"x", x}});
    const Tensor& y = *outputs.at("y").tensor();
    EXPECT_EQ(std::vector<int32_t>(y.data_as<int32_t>(), y.data_as<int32_t>() + y.elements()), expected)
        << name_of(precision);
  }
}

TEST_F(Session, PlansShareTheirMemoryAndWhatTheyFoldOfTheWeights) {
  // The weights are turned, which every plan folds.
  onnx::Model model = make_model({tensor_info("x", {open("batch"), fixed(64)})},
                                 {make_node("Transpose", {"w"}, {"t"}), make_node("MatMul", {"x", "t"}, {"y"})},
                                 {tensor_info("y", {open("batch"), fixed(64)})});
  model.graph.initializers["w"] = reals({64, 64}, std::vector<float>(64 * 64, 0.5F));
  OnnxSession turned = session(model);
  const auto result_of = [&](int64_t batch) {
    return values_of(
        turned.run({{"x", reals({batch, 64}, std::vector<float>(static_cast<size_t>(64 * batch), 1))}}).at("y"));
  };
  EXPECT_THAT(result_of(2), testing::Each(32));
  const int64_t one = turned.constant_bytes();
  EXPECT_GT(one, 0);
  for (const int64_t batch : {3, 40, 5}) EXPECT_THAT(result_of(batch), testing::Each(32));
  EXPECT_EQ(turned.plans(), 4U);
  EXPECT_LT(turned.constant_bytes(), 2 * one);
  const int64_t arena = turned.arena_bytes();
  EXPECT_THAT(result_of(2), testing::Each(32));  // in the arena of the largest
  EXPECT_EQ(turned.arena_bytes(), arena);
}

}  // namespace
}  // namespace weft::engine
