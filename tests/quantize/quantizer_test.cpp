// Whole models: small networks that are written down here, quantized, and run.
#include "weft/quantize/quantizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/support/error_of.h"
#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/cpu/cpu_backend.h"
#include "weft/data/dataset/dataset.h"
#include "weft/engine/onnx_session.h"
#include "weft/ops/all.h"
#include "weft/quantize/accuracy.h"

namespace weft::quantize {
namespace {

using onnx::OnnxNode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor random_tensor(const Shape& shape, uint64_t seed, float deviation = 1) {
  RandomStream stream(seed);
  Tensor tensor(DType::f32, shape);
  for (int64_t at = 0; at < tensor.elements(); ++at) tensor.data_as<float>()[at] = deviation * stream.normal();
  return tensor;
}

onnx::ValueInfo info(const std::string& name, const std::vector<int64_t>& dims) {
  onnx::ValueInfo result;
  result.kind = onnx::ValueInfo::Kind::tensor;
  result.name = name;
  result.dtype = DType::f32;
  result.shape.emplace();
  for (const int64_t dim : dims) result.shape->push_back({dim, ""});
  return result;
}

/// x [4,3,8,8] -> conv, batch norm, relu -> conv, + what the first made, relu -> max pool -> gemm -> 5 logits
onnx::Model small_model() {
  onnx::Model model;
  model.path = "small.onnx";
  model.ir_version = 8;
  model.opsets[""] = 17;
  auto& graph = model.graph;
  graph.name = "small";
  graph.inputs = {info("x", {4, 3, 8, 8})};
  graph.outputs = {info("logits", {4, 5})};
  const auto add_tensor = [&](const std::string& name, Tensor tensor) { graph.initializers[name] = std::move(tensor); };
  add_tensor("w1", random_tensor({8, 3, 3, 3}, 1, 0.3f));
  add_tensor("w2", random_tensor({8, 8, 3, 3}, 2, 0.2f));
  add_tensor("b2", random_tensor({8, 1, 1}, 3, 0.1f));
  add_tensor("w3", random_tensor({5, 128}, 4, 0.1f));
  add_tensor("b3", random_tensor({5}, 5, 0.1f));
  add_tensor("scale", random_tensor({8}, 6, 0.5f));
  add_tensor("shift", random_tensor({8}, 7, 0.5f));
  add_tensor("mean", random_tensor({8}, 8, 0.5f));
  Tensor variance(DType::f32, Shape{8});
  std::fill_n(variance.data_as<float>(), 8, 0.7f);
  add_tensor("variance", variance);
  const auto padded = [](OnnxNode conv) {
    conv.attributes["pads"].value = std::vector<int64_t>{1, 1, 1, 1};
    return conv;
  };
  OnnxNode pool = onnx::node_with_output("MaxPool", {"r2"}, "p");
  pool.attributes["kernel_shape"].value = std::vector<int64_t>{2, 2};
  pool.attributes["strides"].value = std::vector<int64_t>{2, 2};
  OnnxNode gemm = onnx::node_with_output("Gemm", {"f", "w3", "b3"}, "logits");
  gemm.attributes["transB"].value = int64_t{1};
  graph.nodes = {padded(onnx::node_with_output("Conv", {"x", "w1"}, "c1")),
                 onnx::node_with_output("BatchNormalization", {"c1", "scale", "shift", "mean", "variance"}, "n1"),
                 onnx::node_with_output("Relu", {"n1"}, "r1"),
                 padded(onnx::node_with_output("Conv", {"r1", "w2"}, "c2")),
                 onnx::node_with_output("Add", {"c2", "b2"}, "a2"),
                 onnx::node_with_output("Add", {"a2", "r1"}, "s2"),
                 onnx::node_with_output("Relu", {"s2"}, "r2"),
                 pool,
                 onnx::node_with_output("Flatten", {"p"}, "f"),
                 gemm};
  return model;
}

class QuantizerTest : public ::testing::Test {
 protected:
  Tensor run(const onnx::Model& model, const Tensor& input) {
    engine::OnnxSession session(model, ops_, *device_);
    return *session.run({{"x", input}}).at("logits").tensor();
  }
  static Tensor batch(int64_t index) { return random_tensor({4, 3, 8, 8}, 100 + static_cast<uint64_t>(index)); }
  /// How far apart, against the largest of the first.
  static double distance(const Tensor& a, const Tensor& b) {
    double most = 0, largest = 0;
    for (int64_t at = 0; at < a.elements(); ++at) {
      largest = std::max(largest, std::fabs(static_cast<double>(a.data_as<float>()[at])));
      most = std::max(most, std::fabs(static_cast<double>(a.data_as<float>()[at] - b.data_as<float>()[at])));
    }
    return most / largest;
  }
  static std::vector<std::string> ops_of(const onnx::Model& model) {
    std::vector<std::string> names;
    for (const OnnxNode& each : model.graph.nodes) names.push_back(each.op);
    return names;
  }

  /// How many nodes of each op compute the quantized model.
  std::map<std::string, int> compiled_ops(const onnx::Model& model) {
    const Quantizer quantizer(model, {}, data_, runner_);
    const onnx::LowerableModel lowerable(quantizer.quantized(), onnx::standard_operators(), ops_,
                                         [&](const NodeSignature& signature, const std::vector<Tensor>& operands) {
                                           return device_->evaluate(signature, operands);
                                         });
    onnx::LowerRequest request;
    request.live["x"] = onnx::LiveValue(batch(0).type());
    const CompiledStep step = compile(lowerable.lower(request).graph, *device_, {});
    std::map<std::string, int> counts;
    for (const Node& each : step.graph.nodes()) ++counts[each.op->name];
    return counts;
  }

  OpRegistry ops_ = ops::make_registry();
  std::unique_ptr<Device> device_ = std::make_unique<CpuBackend>(1);
  CalibrationData data_{4, batch};
  Runner runner_{ops_, *device_, {}};
};

TEST_F(QuantizerTest, LayersOfFunctionsAndConstantsAreFound) {
  onnx::Model model = small_model();
  auto& graph = model.graph;
  OnnxNode held = onnx::node_with_output("Constant", {}, "held");
  held.attributes["value"].value = graph.initializers.extract("w1").mapped();
  graph.nodes.insert(graph.nodes.begin(), {held, onnx::node_with_output("Identity", {"held"}, "w1")});
  onnx::Function last{"Last", "own", "", {"f", "w3", "b3"}, {"logits"}, {}, {graph.nodes.back()}, {}};
  graph.nodes.back() = onnx::node_with_output("Last", {"f", "w3", "b3"}, "logits");
  graph.nodes.back().domain = "own";
  model.functions = {last};
  const Quantizer whole(small_model(), {}, data_, runner_), held_otherwise(model, {}, data_, runner_);
  EXPECT_EQ(ops_of(held_otherwise.quantized()), ops_of(whole.quantized()));
  EXPECT_EQ(distance(run(held_otherwise.quantized(), batch(0)), run(whole.quantized(), batch(0))), 0);
}

TEST_F(QuantizerTest, FoldsBiasesAndBatchNormsIntoTheSameFunction) {
  onnx::Model folded = small_model();
  fold_layers(folded.graph);
  EXPECT_THAT(ops_of(folded), ElementsAre("Conv", "Relu", "Conv", "Add", "Relu", "MaxPool", "Flatten", "Gemm"));
  EXPECT_LT(distance(run(small_model(), batch(9)), run(folded, batch(9))), 1e-5);
}

TEST_F(QuantizerTest, GivesNearlyTheSameInIntegers) {
  const Quantizer quantizer(small_model(), {}, data_, runner_);
  EXPECT_LT(distance(run(small_model(), batch(9)), run(quantizer.quantized(), batch(9))), 0.05);
}

TEST_F(QuantizerTest, EveryOptionGivesNearlyTheSame) {
  std::vector<QuantizerOptions> all(6);
  all[0].symmetric = true;
  all[1].per_channel = false;
  all[2].equalizes = true;
  all[3].rounding = WeightRounding::adaptive;
  all[4].bits = 4;
  all[5].calibration = Calibration::min_max;
  for (const QuantizerOptions& options : all) {
    const Quantizer quantizer(small_model(), options, data_, runner_);
    EXPECT_LT(distance(run(small_model(), batch(9)), run(quantizer.quantized(), batch(9))), 0.15)
        << "options " << &options - all.data();
  }
}

TEST_F(QuantizerTest, EqualisationKeepsTheFunction) {
  QuantizerOptions options;
  options.equalizes = true;
  const Quantizer quantizer(small_model(), options, data_, runner_);
  EXPECT_LT(distance(run(small_model(), batch(9)), run(quantizer.folded(), batch(9))), 1e-5);
}

TEST_F(QuantizerTest, LeavesLayersOutByName) {
  const Quantizer quantizer(small_model(), {}, data_, runner_);
  const std::set<std::string> all{"w1", "w2", "w3"};
  EXPECT_EQ(distance(run(quantizer.folded(), batch(9)), run(quantizer.quantized(all), batch(9))), 0);
  const onnx::Model mixed = quantizer.quantized({"w2"});
  EXPECT_TRUE(mixed.graph.initializers.contains("w2"));
  EXPECT_FALSE(mixed.graph.initializers.contains("w1"));
}

TEST_F(QuantizerTest, TellsTheErrorOfEachLayer) {
  const Quantizer quantizer(small_model(), {}, data_, runner_);
  const auto errors = quantizer.layer_errors({"w3"});
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[0].weights, 8 * 27);
  EXPECT_GT(errors[0].signal_to_noise, 25);
  EXPECT_EQ(errors[2].bits, 32);
}

TEST_F(QuantizerTest, RefusesNaNInCalibration) {
  const CalibrationData bad{1, [](int64_t) {
                              Tensor tensor = batch(0);
                              tensor.data_as<float>()[5] = NAN;
                              return tensor;
                            }};
  try {
    const Quantizer quantizer(small_model(), {}, bad, runner_);
    FAIL() << "took a NaN";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has a NaN"));
  }
}

TEST_F(QuantizerTest, RefusesAModelWithoutLayers) {
  onnx::Model model = small_model();
  model.graph.nodes = {onnx::node_with_output("Relu", {"x"}, "logits")};
  EXPECT_THROW(Quantizer(model, {}, data_, runner_), Error);
}

TEST_F(QuantizerTest, RanksLayersByWhatTheyCost) {
  const Quantizer quantizer(small_model(), {}, data_, runner_);
  const auto change = [&](const std::string& layer) {
    std::set<std::string> others{"w1", "w2", "w3"};
    others.erase(layer);
    const Tensor exact = run(quantizer.folded(), batch(0)), rounded = run(quantizer.quantized(others), batch(0));
    double sum = 0;
    for (int64_t at = 0; at < exact.elements(); ++at)
      sum += std::pow(
          static_cast<double>(rounded.data_as<float>()[at]) - static_cast<double>(exact.data_as<float>()[at]), 2);
    return sum;
  };
  const std::vector<std::string> ranked = quantizer.by_sensitivity();
  EXPECT_THAT(ranked, testing::UnorderedElementsAre("w1", "w2", "w3"));
  EXPECT_GT(change(ranked[0]), change(ranked[1]));
  EXPECT_GT(change(ranked[1]), change(ranked[2]));
}

/// x [4,8] -> two products with the same weights, + biases of their own, relu between them -> logits [4,8]
onnx::Model model_of_shared_weights() {
  onnx::Model model;
  model.path = "shared.onnx";
  model.ir_version = 8;
  model.opsets[""] = 17;
  auto& graph = model.graph;
  graph.inputs = {info("x", {4, 8})};
  graph.outputs = {info("logits", {4, 8})};
  graph.initializers["w"] = random_tensor({8, 8}, 1, 0.4f);
  graph.initializers["b1"] = random_tensor({8}, 2, 1);
  graph.initializers["b2"] = random_tensor({8}, 3, 1);
  graph.nodes = {onnx::node_with_output("Gemm", {"x", "w", "b1"}, "h"), onnx::node_with_output("Relu", {"h"}, "r"),
                 onnx::node_with_output("Gemm", {"r", "w", "b2"}, "logits")};
  return model;
}

TEST_F(QuantizerTest, LayersThatShareWeightsKeepTheirBiasesAndScales) {
  const CalibrationData rows{4, [](int64_t index) { return random_tensor({4, 8}, 50 + static_cast<uint64_t>(index)); }};
  const Tensor input = random_tensor({4, 8}, 99);
  for (const bool equalizes : {false, true}) {
    QuantizerOptions options;
    options.equalizes = equalizes;
    const Quantizer quantizer(model_of_shared_weights(), options, rows, runner_);
    EXPECT_EQ(quantizer.layers().size(), 2u);
    EXPECT_LT(distance(run(model_of_shared_weights(), input), run(quantizer.folded(), input)), 1e-5);
    EXPECT_LT(distance(run(model_of_shared_weights(), input), run(quantizer.quantized(), input)), 0.05);
    EXPECT_EQ(quantizer.layer_errors({}).size(), 2u);
  }
}

TEST_F(QuantizerTest, WeightsThatSomethingElseReadsStayForIt) {
  onnx::Model model = model_of_shared_weights();
  model.graph.nodes[2] = onnx::node_with_output("Add", {"r", "row"}, "logits");
  OnnxNode gather = onnx::node_with_output("Gather", {"w", "first"}, "row");
  Tensor first(DType::i64, Shape{});
  model.graph.initializers["first"] = first;
  model.graph.nodes.insert(model.graph.nodes.begin(), gather);
  fold_layers(model.graph);
  const std::vector<Layer> layers = find_layers(model.graph);
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_NE(layers[0].weight, "w");
  EXPECT_TRUE(model.graph.initializers.contains("w"));
}

TEST_F(QuantizerTest, BiasesOfChannelsNextToNothingKeepTheirNumbers) {
  onnx::Model model = small_model();
  Tensor weight = model.graph.initializers.at("w3").tensor()->clone();
  for (int64_t at = 0; at < 128; ++at) weight.data_as<float>()[at] = 1e-8f;
  model.graph.initializers["w3"] = weight;
  Tensor bias = model.graph.initializers.at("b3").tensor()->clone();
  bias.data_as<float>()[0] = 0.5f;
  model.graph.initializers["b3"] = bias;
  const Quantizer quantizer(model, {}, data_, runner_);
  const onnx::Model quantized = quantizer.quantized();
  const auto* steps = quantized.graph.initializers.at("w3.quantized.bias").tensor()->data_as<int32_t>();
  EXPECT_LE(std::abs(int64_t{steps[0]}), int64_t{1} << 30);
  const Tensor exact = run(model, batch(9)), rounded = run(quantized, batch(9));
  for (int64_t row = 0; row < 4; ++row)
    EXPECT_NEAR(rounded.data_as<float>()[row * 5], exact.data_as<float>()[row * 5], 0.02f);
}

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

TEST_F(QuantizerTest, FewBitsFindNaNInSamplesAndWeights) {
  QuantizerOptions options;
  options.bits = 4;
  const CalibrationData bad{1, [](int64_t) {
                              Tensor tensor = random_tensor({4, 8}, 1);
                              tensor.data_as<float>()[5] = NAN;
                              return tensor;
                            }};
  EXPECT_THAT(test::error_of([&] { Quantizer(model_of_shared_weights(), options, bad, runner_); }, ErrorKind::data),
              HasSubstr("has a NaN"));
  onnx::Model model = model_of_shared_weights();
  Tensor weight = model.graph.initializers.at("w").tensor()->clone();
  weight.data_as<float>()[3] = INFINITY;
  model.graph.initializers["w"] = weight;
  EXPECT_THAT(test::error_of([&] { Quantizer(model, options, bad, runner_); }, ErrorKind::data),
              HasSubstr("hold NaN or infinity"));
}

TEST_F(QuantizerTest, FewBitsConvertOperatorsOfOlderVersions) {
  // Of version 13: axes of ReduceMean are an attribute, and Split has no number of outputs.
  onnx::Model model = model_of_shared_weights();
  model.opsets[""] = 13;
  OnnxNode mean = onnx::node_with_output("ReduceMean", {"h"}, "m"),
           split = onnx::node_with_output("Split", {"c"}, "left");
  mean.attributes["axes"].value = std::vector<int64_t>{1};
  split.outputs = {"left", "right"};
  split.attributes["axis"].value = int64_t{1};
  model.graph.nodes = {onnx::node_with_output("Gemm", {"x", "w", "b1"}, "h"), mean,
                       onnx::node_with_output("Sub", {"h", "m"}, "c"), split,
                       onnx::node_with_output("Mul", {"left", "right"}, "logits")};
  model.graph.outputs = {info("logits", {4, 4})};
  const CalibrationData rows{2, [](int64_t index) { return random_tensor({4, 8}, 50 + static_cast<uint64_t>(index)); }};
  const Tensor input = random_tensor({4, 8}, 99);
  const Tensor expected = run(model, input);
  for (const int bits : {4, 2}) {
    QuantizerOptions options;
    options.bits = bits;
    const Quantizer quantizer(model, options, rows, runner_);
    const onnx::Model quantized = quantizer.quantized();
    EXPECT_EQ(quantized.opset(), bits == 4 ? 21 : 25);
    for (const OnnxNode& each : quantized.graph.nodes) {
      if (each.op == "ReduceMean") {
        EXPECT_FALSE(each.attributes.contains("axes"));
        EXPECT_EQ(each.inputs.size(), 2u);
      }
      if (each.op == "Split") {
        EXPECT_TRUE(each.attributes.contains("num_outputs"));
      }
    }
    EXPECT_LT(distance(expected, run(quantizer.folded(), input)), 1e-5);
  }
}

TEST_F(QuantizerTest, FewBitsRefuseWhatNewerVersionsReadOtherwise) {
  onnx::Model model = small_model();
  model.graph.nodes[1].op = "GroupNormalization";
  QuantizerOptions options;
  options.bits = 4;
  int batches = 0;
  const Runner counting{ops_, *device_, [&] { ++batches; }};
  EXPECT_THAT(test::error_of([&] { Quantizer(model, options, data_, counting); }, ErrorKind::usage),
              HasSubstr("[GroupNormalization 'n1'] means something else in version 21"));
  EXPECT_EQ(batches, 0);
}

TEST_F(QuantizerTest, PaddingThatANodeLeavesToItsSizesCountsInCalibration) {
  onnx::Model model = small_model(), automatic = small_model();
  for (OnnxNode& each : automatic.graph.nodes)
    if (each.op == "Conv") {
      each.attributes.erase("pads");
      each.attributes["auto_pad"].value = std::string("SAME_UPPER");
    }
  const auto moments = [&](const onnx::Model& of) {
    return observe_inputs(of, find_layers(of.graph), data_, runner_, 512, 2304).at("w1").front().sums;
  };
  EXPECT_EQ(moments(automatic), moments(model));
}

TEST_F(QuantizerTest, ClassesOfNaNAreAnError) {
  const LabelledData data{{1,
                           [](int64_t) {
                             Tensor tensor = batch(0);
                             tensor.data_as<float>()[0] = NAN;
                             return tensor;
                           }},
                          [](int64_t) { return Tensor(DType::i32, Shape{4}); }};
  EXPECT_THAT(test::error_of([&] { measure(small_model(), data, runner_); }, ErrorKind::numeric),
              HasSubstr("has a NaN for a sample of batch 0"));
}

/// A model that gives what it reads, and data of one batch of it.
class Measured : public QuantizerTest {
 protected:
  double measured(const Tensor& output, const Tensor& targets, Criterion criterion) {
    onnx::Model model;
    model.ir_version = 8;
    model.opsets[""] = 17;
    model.graph.inputs = {info("x", output.shape().dims())};
    model.graph.outputs = {info("logits", output.shape().dims())};
    model.graph.nodes = {onnx::node_with_output("Identity", {"x"}, "logits")};
    const LabelledData data{{1, [&](int64_t) { return output; }}, [&](int64_t) { return targets; }, criterion};
    return measure(model, data, runner_);
  }
  static Tensor labels(const Shape& shape, const std::vector<int32_t>& numbers) {
    return Tensor::of_i32(shape, numbers);
  }
};

TEST_F(Measured, PerplexityIsTheExponentOfTheMeanOverTokensThatCount) {
  const float three = std::log(3.0f);  // beside a 0: three quarters
  const Tensor output = Tensor::of({1, 3, 2}, {{three, 0, 0, 0, 9, -9}});
  EXPECT_NEAR(measured(output, labels({1, 3}, {0, 1, data::kIgnoredTarget}), Criterion::perplexity),
              std::sqrt(4.0 / 3 * 2), 1e-6);
  const Tensor rows = Tensor::of({3, 2}, {{three, 0, 0, 0, 9, -9}});  // the same, a row each
  EXPECT_NEAR(measured(rows, labels({1, 3}, {0, 1, data::kIgnoredTarget}), Criterion::perplexity),
              std::sqrt(4.0 / 3 * 2), 1e-6);
}

TEST_F(Measured, AccuracyOfPixelsReadsClassesBehindTheBatch) {
  const Tensor output = Tensor::of({1, 2, 1, 4}, {{1, 0, 1, 0, 0, 1, 0, 1}});
  EXPECT_EQ(measured(output, labels({1, 1, 4}, {0, 1, 1, data::kIgnoredTarget}), Criterion::accuracy), 2.0 / 3);
}

TEST_F(Measured, ValuesHaveASquaredError) {
  EXPECT_EQ(measured(Tensor::of({2, 1}, {{1, 5}}), Tensor::of({2, 1}, {{0, 2}}), Criterion::squared_error), 5.0);
}

TEST_F(Measured, AnOutputWithoutARowForEachTargetIsRefused) {
  EXPECT_THAT(
      test::error_of(
          [&] {
            measured(random_tensor({2, 3, 4}, 1), labels({2, 5}, std::vector<int32_t>(10)), Criterion::perplexity);
          },
          ErrorKind::shape),
      HasSubstr("the output 'logits' is f32[2,3,4], which is no row of f32 for each target of i32[2,5]"));
}

TEST(LossOf, IsPointsOfAnAccuracyAndPerCentOfTheOthers) {
  EXPECT_NEAR(loss_of(Criterion::accuracy, 0.9, 0.875), 2.5, 1e-12);
  EXPECT_DOUBLE_EQ(loss_of(Criterion::perplexity, 4, 5), 25);
  EXPECT_DOUBLE_EQ(loss_of(Criterion::squared_error, 4, 3), -25);
}

TEST_F(QuantizerTest, MasksAreFilledAsTrainingFillsThem) {
  onnx::Model model;
  model.ir_version = 8;
  model.opsets[""] = 17;
  onnx::ValueInfo tokens = info("input_ids", {2, 3}), mask = info("attention_mask", {2, 3});
  tokens.dtype = mask.dtype = DType::i64;
  model.graph.inputs = {mask, tokens};
  model.graph.outputs = {info("logits", {2, 3, 4})};
  model.graph.initializers["table"] = random_tensor({5, 8}, 1);
  model.graph.initializers["w"] = random_tensor({8, 4}, 2);
  Tensor axes(DType::i64, Shape{1});
  *axes.data_as<int64_t>() = 2;
  model.graph.initializers["axes"] = axes;
  OnnxNode cast = onnx::node_with_output("Cast", {"attention_mask"}, "m");
  cast.attributes["to"].value = int64_t{1};
  model.graph.nodes = {onnx::node_with_output("Gather", {"table", "input_ids"}, "e"), cast,
                       onnx::node_with_output("Unsqueeze", {"m", "axes"}, "u"),
                       onnx::node_with_output("Mul", {"e", "u"}, "h"),
                       onnx::node_with_output("MatMul", {"h", "w"}, "logits")};
  const CalibrationData words{1, [](int64_t) {
                                Tensor batch(DType::i32, Shape{2, 3});
                                for (int at = 0; at < 6; ++at) batch.data_as<int32_t>()[at] = at % 5;
                                return batch;
                              }};
  const Quantizer quantizer(model, {}, words, runner_);
  const std::vector<LayerError> errors = quantizer.layer_errors({});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_GT(errors[0].signal_to_noise, 20);
  const auto inputs = inputs_for(model, words.batch(0));
  EXPECT_EQ(inputs.at("attention_mask").tensor()->data_as<int64_t>()[5], 1);
  EXPECT_EQ(inputs.at("input_ids").tensor()->data_as<int64_t>()[4], 4);
}

/// x -> conv, relu -> batch norm, relu, conv -> joined with what it read -> batch norm, relu, conv -> 5 logits, as
/// dense blocks are.
onnx::Model dense_model() {
  onnx::Model model = small_model();
  auto& graph = model.graph;
  const auto norm = [&](const std::string& name, const std::string& input, int64_t channels, uint64_t seed) {
    graph.initializers[name + ".scale"] = random_tensor({channels}, seed, 0.5f);
    graph.initializers[name + ".shift"] = random_tensor({channels}, seed + 1, 0.5f);
    graph.initializers[name + ".mean"] = random_tensor({channels}, seed + 2, 0.5f);
    Tensor variance(DType::f32, Shape{channels});
    std::fill_n(variance.data_as<float>(), channels, 0.7f);
    graph.initializers[name + ".variance"] = variance;
    return onnx::node_with_output("BatchNormalization",
                                  {input, name + ".scale", name + ".shift", name + ".mean", name + ".variance"}, name);
  };
  const auto conv = [&](const std::string& name, const std::string& input, const std::string& weight) {
    OnnxNode node = onnx::node_with_output("Conv", {input, weight}, name);
    node.attributes["pads"].value = std::vector<int64_t>{1, 1, 1, 1};
    return node;
  };
  graph.initializers["w4"] = random_tensor({5, 16, 3, 3}, 21, 0.2f);
  OnnxNode joined = onnx::node_with_output("Concat", {"r1", "c2"}, "j");
  joined.attributes["axis"].value = int64_t{1};
  graph.nodes = {conv("c1", "x", "w1"),
                 onnx::node_with_output("Relu", {"c1"}, "r1"),
                 norm("n1", "r1", 8, 31),
                 onnx::node_with_output("Relu", {"n1"}, "m1"),
                 conv("c2", "m1", "w2"),
                 joined,
                 norm("n2", "j", 16, 41),
                 onnx::node_with_output("Relu", {"n2"}, "m2"),
                 conv("c3", "m2", "w4"),
                 onnx::node_with_output("GlobalAveragePool", {"c3"}, "g"),
                 onnx::node_with_output("Flatten", {"g"}, "logits")};
  return model;
}

TEST_F(QuantizerTest, JoinedValuesShareTheScaleOfTheWhole) {
  const Quantizer quantizer(dense_model(), {}, data_, runner_);
  const onnx::Model quantized = quantizer.quantized();
  const auto scale_of = [&](const std::string& value) {
    const auto& tensors = quantized.graph.initializers;
    return *tensors.at(value + ".quantized.scale").tensor()->data_as<float>();
  };
  EXPECT_EQ(scale_of("r1"), scale_of("j"));
  EXPECT_EQ(scale_of("c2"), scale_of("j"));
  EXPECT_NE(scale_of("m1"), scale_of("j"));
  EXPECT_LT(distance(run(dense_model(), batch(9)), run(quantized, batch(9))), 0.08);
}

TEST_F(QuantizerTest, DenseBlocksComputeWithIntegers) {
  std::map<std::string, int> counts = compiled_ops(dense_model());
  EXPECT_EQ(counts["quantized_affine"], 2);
  EXPECT_EQ(counts["quantized_conv2d"], 2);
  EXPECT_EQ(counts["integer_conv2d"], 1) << "whose sums a mean reads";
  EXPECT_EQ(counts["batch_norm_inference"] + counts["dequantize_linear"] + counts["conv2d"], 0);
}

TEST_F(QuantizerTest, ComputesWithIntegers) {
  std::map<std::string, int> counts = compiled_ops(small_model());
  EXPECT_EQ(counts["quantized_conv2d"], 2);
  EXPECT_EQ(counts["quantized_add"], 1);
  EXPECT_EQ(counts["max_pool2d"], 1);
  EXPECT_EQ(counts["integer_matmul"], 1);
  EXPECT_EQ(counts["conv2d"] + counts["matmul"] + counts["dequantize_linear"], 0);
}

TEST(LeaveOutFirst, TakesAsFewAsWillDo) {
  const std::vector<std::string> layers{"a", "b", "c", "d", "e", "f", "g"};
  for (size_t needed = 1; needed <= layers.size(); ++needed) {
    int measured = 0;
    const MixedPrecision found = leave_out_first(layers, 0.5, [&](const std::set<std::string>& left_out) {
      ++measured;
      return left_out.size() >= needed ? 0.4 : 5.0;
    });
    EXPECT_EQ(found.left_out.size(), needed);
    EXPECT_LE(measured, 6);
  }
}

TEST(LeaveOutFirst, EndsWithAllWhereNothingHelps) {
  const MixedPrecision found = leave_out_first({"a", "b"}, 0.5, [](const auto&) { return 3.0; });
  EXPECT_EQ(found.left_out.size(), 2u);
  EXPECT_EQ(found.loss, 3.0);
}

}  // namespace
}  // namespace weft::quantize
