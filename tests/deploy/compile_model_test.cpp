#include "weft/deploy/compile_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/error_of.h"
#include "weft/base/rng.h"
#include "weft/deploy/export_onnx.h"
#include "weft/engine/engine.h"
#include "weft/engine/onnx_session.h"

namespace weft::deploy {
namespace {

using testing::HasSubstr;
using weft::test::error_of;

class CompileModel : public testing::Test {
 protected:
  const Library library_ = standard_library();
  const std::unique_ptr<Device> device_ = library_.device.make({.threads = 2, .kernels = library_.kernels});
};

class CompiledZoo : public CompileModel, public testing::WithParamInterface<const char*> {};

TEST_P(CompiledZoo, IsOneGraphForAnyBatch) {
  const engine::DeployedModel model = compile_zoo_model(library_, GetParam(), 3, {});
  ASSERT_EQ(model.graphs.size(), 1U);
  EXPECT_EQ(model.graphs[0].batch, 0);
  EXPECT_TRUE(model.inputs.at(0).type.find("[N,") != std::string::npos) << model.inputs.at(0).type;
  engine::Engine engine(model, library_.ops, *device_);
  EXPECT_EQ(engine.input_type(0, 6).shape[0], 6);
}

INSTANTIATE_TEST_SUITE_P(Zoo, CompiledZoo,
                         testing::Values("mlp", "lenet5", "resnet9", "resnet18", "densenet121", "mobilenet_v2",
                                         "vit_tiny", "unet_small", "autoencoder", "lstm_classifier",
                                         "seq2seq_attention", "crnn", "transformer_lm", "airbench94"));

TEST_F(CompileModel, ListedBatchesHaveAGraphEachOverTheSameConstants) {
  const engine::DeployedModel one = compile_zoo_model(library_, "lenet5", 3, {.batches = {1}});
  const engine::DeployedModel both = compile_zoo_model(library_, "lenet5", 3, {.batches = {1, 16}});
  ASSERT_EQ(both.graphs.size(), 2U);
  EXPECT_EQ(both.graphs[1].batch, 16);
  EXPECT_EQ(both.constants.size(), one.constants.size());
}

TEST_F(CompileModel, AnOnnxModelComputesWhatItsSessionComputes) {
  onnx::Model model = export_model(library_, "vit_tiny", 3, {});
  model.path = "vit.onnx";
  engine::OnnxSession session(model, library_.ops, *device_, {.compile = {.threads = 2}});
  engine::Engine engine(compile_onnx(library_, model, {}), library_.ops, *device_);
  Tensor images(engine.input_type(0, 3));
  RandomStream stream(mix(7, hash_name("samples")));
  for (int64_t index = 0; index < images.elements(); ++index)
    images.data_as<float>()[index] = static_cast<float>(2 * stream.uniform() - 1);
  const Tensor expected = *session.run({{session.inputs().at(0).name, images}}).at("logits").tensor();
  engine::Stream own(engine);
  own.set_input(0, images.data());
  own.run(3);
  const Tensor logits = own.output(0);
  ASSERT_EQ(logits.type(), expected.type());
  EXPECT_EQ(std::memcmp(logits.data(), expected.data(), static_cast<size_t>(expected.bytes())), 0);
}

TEST_F(CompileModel, AnOnnxModelOfOneBatchKeepsIt) {
  const engine::DeployedModel model = compile_onnx(library_, export_model(library_, "lenet5", 3, {.batch = 4}), {});
  ASSERT_EQ(model.graphs.size(), 1U);
  EXPECT_EQ(model.graphs[0].batch, 4);
}

TEST_F(CompileModel, PicturesNeedAModelThatReadsThem) {
  EXPECT_THAT(error_of([&] { compile_zoo_model(library_, "transformer_lm", 3, {.mean = {0.5f}, .deviation = {1.0f}}); },
                       ErrorKind::usage),
              HasSubstr("which are no pictures f32[N,C,H,W]"));
  EXPECT_THAT(error_of([&] {
                compile_zoo_model(library_, "lenet5", 3, {.mean = {0.5f, 0.5f}, .deviation = {1.0f}});
              }),
              HasSubstr("2 means and 1 deviations are none of 1 channels"));
}

}  // namespace
}  // namespace weft::deploy
