#include "weft/deploy/export_onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/compile/compile.h"
#include "weft/engine/onnx_session.h"
#include "weft/onnx/file/model_file.h"
#include "weft/onnx/file/model_writer.h"
#include "weft/runtime/executor.h"

namespace weft::deploy {
namespace {

class ExportOnnx : public testing::Test {
 protected:
  const Library library_ = standard_library();
  const std::unique_ptr<Device> device_ = library_.device.make({.threads = 2, .kernels = library_.kernels});

  /// What the file would be read as.
  onnx::Model exported(const std::string& name, const OnnxExportOptions& options = {}) const {
    return onnx::parse_model(onnx::print_model(export_model(library_, name, 3, options)), name, {});
  }

  Tensor samples(const models::ModelInput& input) const {
    std::vector<int64_t> shape = input.shape;
    shape.insert(shape.begin(), input.batch);
    const bool is_tokens = input.shape.size() == 1;
    Tensor tensor(is_tokens ? DType::i32 : DType::f32, Shape(shape));
    RandomStream stream(mix(7, hash_name("samples")));
    for (int64_t index = 0; index < tensor.elements(); ++index) {
      const double number = stream.uniform();
      if (is_tokens)
        tensor.data_as<int32_t>()[index] = static_cast<int32_t>(number * 20);
      else
        tensor.data_as<float>()[index] = static_cast<float>(2 * number - 1);
    }
    return tensor;
  }

  /// By the model's own graph.
  Tensor own_logits(const std::string& name, const models::ModelInput& input, const Tensor& batch) const {
    models::Model model = build_model(library_, name, input, {}, models::Mode::inference);
    model.graph.add_output("logits", model.logits);
    CompileOptions options;
    options.threads = 2;
    options.passes.disabled = {"fuse_attention"};
    const CompiledStep step = compile(model.graph, *device_, options);
    State state;
    for (const models::ParameterSpec& parameter : model.parameters)
      state.set(parameter.name, models::initialize(parameter, 3));
    Executor executor(step.graph, step.plan, *device_);
    executor.bind_state(state);
    executor.bind_batch(input.shape.size() == 1 ? "tokens" : "image", batch.data());
    const Tensor labels(model.graph.type(model.labels));
    if (executor.has_batch("labels")) executor.bind_batch("labels", labels.data());
    executor.run();
    return executor.output("logits");
  }
};

/// Models that compute their step in less than a second; tools/onnx_roundtrip.py --zoo checks all against ONNX Runtime.
class ExportedModel : public ExportOnnx, public testing::WithParamInterface<const char*> {};

TEST_P(ExportedModel, ComesBackWithTheSameBits) {
  models::ModelInput input = models::find_model(library_.models, GetParam()).default_input;
  CompileOptions compile_options;
  compile_options.threads = 2;
  // Which round otherwise: constant weights let convolutions take other kernels.
  compile_options.passes.disabled = {"fold_batch_norm", "fuse_attention", "fuse_conv_epilogue"};
  engine::OnnxSession session(exported(GetParam()), library_.ops, *device_, {.compile = compile_options});
  for (const int64_t batch : {1, 3}) {
    input.batch = batch;
    const Tensor images = samples(input);
    const Tensor own = own_logits(GetParam(), input, images);
    const auto outputs = session.run({{session.inputs().at(0).name, images}});
    const Tensor& imported = *outputs.at("logits").tensor();
    ASSERT_EQ(imported.type(), own.type());
    EXPECT_EQ(std::memcmp(imported.data(), own.data(), static_cast<size_t>(own.bytes())), 0) << "batch " << batch;
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ExportedModel,
                         testing::Values("mlp", "lenet5", "alexnet", "resnet9", "resnet20", "resnet18", "resnet50_128",
                                         "wide_resnet", "densenet121", "mobilenet_v2", "vit_tiny", "unet_small",
                                         "autoencoder", "lstm_classifier", "seq2seq_attention", "crnn",
                                         "transformer_lm", "airbench94"));

TEST_F(ExportOnnx, KeepsTheNamesOfParametersAndLeavesTheBatchOpen) {
  const onnx::Model model = exported("lenet5");
  EXPECT_TRUE(model.graph.initializers.contains("conv1.weight"));
  EXPECT_EQ(describe(model.graph.inputs.at(0)), "f32[batch,1,28,28]");
  EXPECT_EQ(describe(model.graph.outputs.at(0)), "f32[batch,10]");
}

TEST_F(ExportOnnx, OfOneBatchHasFixedSizes) {
  EXPECT_EQ(describe(exported("lenet5", {.batch = 4}).graph.inputs.at(0)), "f32[4,1,28,28]");
}

TEST_F(ExportOnnx, OlderOperatorsComputeTheSameToRounding) {
  models::ModelInput input = models::find_model(library_.models, "vit_tiny").default_input;
  input.batch = 1;
  const Tensor images = samples(input);
  const Tensor own = own_logits("vit_tiny", input, images);
  engine::OnnxSession session(exported("vit_tiny", {.opset = 13}), library_.ops, *device_);
  EXPECT_EQ(session.model().opset(), 13);
  const auto outputs = session.run({{"image", images}});
  const Tensor& imported = *outputs.at("logits").tensor();
  for (int64_t index = 0; index < own.elements(); ++index)
    EXPECT_NEAR(imported.data_as<float>()[index], own.data_as<float>()[index], 1e-4);
}

TEST_F(ExportOnnx, AVersionThatWeftDoesNotWriteIsRefused) {
  try {
    exported("mlp", {.opset = 7});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("weft writes ONNX's operators of version 13 to 28, not 7"));
  }
}

class ExportedFile : public ExportOnnx {
 protected:
  std::map<std::string, onnx::HostValue> outputs_of(const onnx::Model& model, const Tensor& batch) const {
    engine::OnnxSession session(model, library_.ops, *device_, {});
    return session.run({{session.inputs().at(0).name, batch}});
  }
};

TEST_F(ExportedFile, OfOtherVersionsGivesTheSame) {
  for (const char* name : {"lenet5", "resnet20", "transformer_lm", "lstm_classifier"}) {
    models::ModelInput input = models::find_model(library_.models, name).default_input;
    input.batch = 3;
    const Tensor batch = samples(input);
    const onnx::Model first = exported(name);
    const auto expected = outputs_of(first, batch);
    for (const int64_t opset : {17, 28}) {
      OnnxExportOptions options;
      options.opset = opset;
      const onnx::Model again =
          onnx::parse_model(onnx::print_model(export_file(library_, first, {}, options)), name, {});
      EXPECT_EQ(again.opset(), opset);
      EXPECT_EQ(again.metadata, first.metadata);
      ASSERT_EQ(again.graph.inputs.size(), 1U);
      EXPECT_EQ(again.graph.inputs[0].name, first.graph.inputs[0].name);
      EXPECT_EQ(again.graph.inputs[0].shape->at(0).symbol, "batch");
      const auto outputs = outputs_of(again, batch);
      const Tensor &got = *outputs.at("logits").tensor(), &wanted = *expected.at("logits").tensor();
      ASSERT_EQ(got.type(), wanted.type());
      for (int64_t index = 0; index < got.elements(); ++index)
        ASSERT_NEAR(got.data_as<float>()[index], wanted.data_as<float>()[index], 1e-4) << name << " " << opset;
    }
  }
}

TEST_F(ExportedFile, OfOneBatchHasItsSize) {
  OnnxExportOptions options;
  options.batch = 5;
  const onnx::Model fixed = export_file(library_, exported("mlp"), {}, options);
  EXPECT_EQ(fixed.graph.inputs[0].shape->at(0).size, 5);
  options.batch = 6;
  EXPECT_THAT([&] { export_file(library_, fixed, {}, options); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("is for batches of 5 alone")));
}

}  // namespace
}  // namespace weft::deploy
