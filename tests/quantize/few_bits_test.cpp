// Weights of 4 and 2 bits: what is converted for them, and what is refused.
#include <gmock/gmock.h>

#include "tests/support/error_of.h"
#include "tests/support/quantizer_rig.h"

namespace weft::quantize {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace weft::quantize
