// Whole models: small networks that are written down here, quantized, and run.
#include "weft/quantize/quantizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/cpu/cpu_backend.h"
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

OnnxNode node(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
  OnnxNode result;
  result.name = output;
  result.op = op;
  result.inputs = std::move(inputs);
  result.outputs = {output};
  return result;
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
  OnnxNode pool = node("MaxPool", {"r2"}, "p");
  pool.attributes["kernel_shape"].value = std::vector<int64_t>{2, 2};
  pool.attributes["strides"].value = std::vector<int64_t>{2, 2};
  OnnxNode gemm = node("Gemm", {"f", "w3", "b3"}, "logits");
  gemm.attributes["transB"].value = int64_t{1};
  graph.nodes = {padded(node("Conv", {"x", "w1"}, "c1")),
                 node("BatchNormalization", {"c1", "scale", "shift", "mean", "variance"}, "n1"),
                 node("Relu", {"n1"}, "r1"),
                 padded(node("Conv", {"r1", "w2"}, "c2")),
                 node("Add", {"c2", "b2"}, "a2"),
                 node("Add", {"a2", "r1"}, "s2"),
                 node("Relu", {"s2"}, "r2"),
                 pool,
                 node("Flatten", {"p"}, "f"),
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

  OpRegistry ops_ = ops::make_registry();
  std::unique_ptr<Device> device_ = std::make_unique<CpuBackend>(1);
  CalibrationData data_{4, batch};
  Runner runner_{ops_, *device_, {}};
};

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
  model.graph.nodes = {node("Relu", {"x"}, "logits")};
  EXPECT_THROW(Quantizer(model, {}, data_, runner_), Error);
}

TEST_F(QuantizerTest, RanksLayersByWhatTheyCost) {
  const Quantizer quantizer(small_model(), {}, data_, runner_);
  std::vector<std::string> ranked = quantizer.by_sensitivity();
  std::sort(ranked.begin(), ranked.end());
  EXPECT_THAT(ranked, ElementsAre("w1", "w2", "w3"));
}

TEST_F(QuantizerTest, ComputesWithIntegers) {
  const Quantizer quantizer(small_model(), {}, data_, runner_);
  const onnx::LowerableModel lowerable(quantizer.quantized(), onnx::standard_operators(), ops_,
                                       [&](const NodeSignature& signature, const std::vector<Tensor>& operands) {
                                         return device_->evaluate(signature, operands);
                                       });
  onnx::LowerRequest request;
  request.live["x"] = onnx::LiveValue(batch(0).type());
  const CompiledStep step = compile(lowerable.lower(request).graph, *device_, {});
  std::map<std::string, int> counts;
  for (const Node& each : step.graph.nodes()) ++counts[each.op->name];
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
    const MixedPrecision found = leave_out_first(layers, 0.9, [&](const std::set<std::string>& left_out) {
      ++measured;
      return left_out.size() >= needed ? 0.95 : 0.5;
    });
    EXPECT_EQ(found.left_out.size(), needed);
    EXPECT_LE(measured, 6);
  }
}

TEST(LeaveOutFirst, EndsWithAllWhereNothingHelps) {
  const MixedPrecision found = leave_out_first({"a", "b"}, 0.9, [](const auto&) { return 0.1; });
  EXPECT_EQ(found.left_out.size(), 2u);
  EXPECT_EQ(found.accuracy, 0.1);
}

}  // namespace
}  // namespace weft::quantize
