// Whole models: small networks that are written down, quantized, and run.
#include "weft/quantize/quantizer.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/support/error_of.h"
#include "tests/support/quantizer_rig.h"
#include "weft/base/error.h"
#include "weft/quantize/accuracy.h"

namespace weft::quantize {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST_F(QuantizerTest, SevenBitsKeepEveryWeightNarrow) {
  for (const WeightRounding rounding : {WeightRounding::nearest, WeightRounding::adaptive}) {
    QuantizerOptions options;
    options.bits = 7;
    options.rounding = rounding;
    const Quantizer quantizer(small_model(), options, data_, runner_);
    const onnx::Model seven = quantizer.quantized(), eight = Quantizer(small_model(), {}, data_, runner_).quantized();
    EXPECT_EQ(ops_of(seven), ops_of(eight));
    EXPECT_EQ(seven.opset(), eight.opset());
    int most = 0;
    for (const auto& [name, value] : seven.graph.initializers)
      if (value.tensor()->dtype() == DType::i8)
        for (int64_t at = 0; at < value.tensor()->elements(); ++at)
          most = std::max(most, std::abs(int{value.tensor()->data_as<int8_t>()[at]}));
    EXPECT_EQ(most, 63);
    EXPECT_LT(distance(run(small_model(), batch(9)), run(seven, batch(9))), 0.1);
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
  EXPECT_EQ(counts["dequantized_matmul"], 1);
  EXPECT_EQ(counts["conv2d"] + counts["matmul"] + counts["dequantize_linear"], 0);
}

}  // namespace
}  // namespace weft::quantize
