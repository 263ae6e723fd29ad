#include "weft/deploy/compile_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/onnx/model_support.h"
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

TEST_F(CompileModel, AnOnnxModelOfOneBatchRefusesAnother) {
  EXPECT_THAT(
      error_of([&] { compile_onnx(library_, export_model(library_, "lenet5", 3, {.batch = 4}), {.batches = {16}}); },
               ErrorKind::usage),
      HasSubstr("is for a batch of 4 alone"));
}

/// Of x f32[batch,3].
onnx::Model model_of_rows(std::vector<onnx::OnnxNode> nodes, std::map<std::string, onnx::HostValue> initializers) {
  onnx::Model model = onnx::make_model({onnx::tensor_info("x", {onnx::open("batch"), onnx::fixed(3)})},
                                       std::move(nodes), {onnx::tensor_info("y", {})});
  model.graph.initializers = std::move(initializers);
  return model;
}

TEST_F(CompileModel, AGraphThatCutsLargeBatchesIsNotOfAnyBatch) {
  const auto first_rows = [&](int64_t rows) {
    return model_of_rows(
        {onnx::make_node("Slice", {"x", "from", "to", "axis"}, {"y"})},
        {{"from", onnx::wholes({1}, {0})}, {"to", onnx::wholes({1}, {rows})}, {"axis", onnx::wholes({1}, {0})}});
  };
  EXPECT_THAT(error_of([&] { compile_onnx(library_, first_rows(1000), {}); }, ErrorKind::usage),
              HasSubstr("another form for each size of the batch"));
  EXPECT_EQ(compile_onnx(library_, first_rows(INT64_MAX), {}).graphs[0].batch, 0);
}

TEST_F(CompileModel, AGraphThatIsAnotherForOneSampleIsNotOfAnyBatch) {
  // Squeeze takes the batch away where it is 1.
  const onnx::Model model =
      model_of_rows({onnx::make_node("Squeeze", {"x"}, {"s"}), onnx::make_node("Neg", {"s"}, {"y"})}, {});
  EXPECT_THAT(error_of([&] { compile_onnx(library_, model, {}); }, ErrorKind::usage),
              HasSubstr("another form for each size of the batch"));
}

TEST_F(CompileModel, AModelWithoutAGraphOfItsOwnIsSentToItsSession) {
  onnx::Model model = model_of_rows({onnx::make_node("Reshape", {"x", "shape"}, {"y"})}, {});
  model.graph.inputs.push_back(onnx::tensor_info("shape", {onnx::fixed(2)}, DType::i64));
  EXPECT_THAT(error_of([&] { compile_onnx(library_, model, {}); }, ErrorKind::usage),
              HasSubstr("`weft infer` without --batch, --streams, --bind and --json"));
}

TEST_F(CompileModel, BoundNamesAreOfOpenDimensions) {
  const onnx::Model model = model_of_rows({onnx::make_node("Neg", {"x"}, {"y"})}, {});
  EXPECT_THAT(error_of(
                  [&] {
                    compile_onnx(library_, model, {.sizes = {{"bach", 4}}});
                  },
                  ErrorKind::usage),
              HasSubstr("has an open dimension of that name; did you mean 'batch'?"));
  EXPECT_THAT(error_of(
                  [&] {
                    compile_onnx(library_, model, {.sizes = {{"batch", 4}}});
                  },
                  ErrorKind::usage),
              HasSubstr("write --batch 4"));
  EXPECT_THAT(error_of(
                  [&] {
                    compile_zoo_model(library_, "lenet5", 3, {.sizes = {{"batch", 4}}});
                  },
                  ErrorKind::usage),
              HasSubstr("--bind batch: it binds dimensions of ONNX files"));
}

TEST_F(CompileModel, ShorterSidesWithoutMeansAreRefused) {
  EXPECT_THAT(error_of([&] { compile_zoo_model(library_, "lenet5", 3, {.resize = 32}); }, ErrorKind::usage),
              HasSubstr("--resize 32 has no effect without --mean and --deviation"));
}

TEST_F(CompileModel, MetadataOfPixelsDoNotForbidAModelThatReadsNoPictures) {
  onnx::Model model = model_of_rows({onnx::make_node("Neg", {"x"}, {"y"})}, {});
  model.metadata = {{"mean", "0.5"}, {"deviation", "0.25"}};
  EXPECT_FALSE(compile_onnx(library_, model, {}).pictures);
}

TEST_F(CompileModel, MetadataOfOtherChannelsAreNamedAsSuch) {
  onnx::Model model = export_model(library_, "lenet5", 3, {});
  model.path = "net.onnx";
  model.metadata["mean"] = "0.5,0.5";
  model.metadata["deviation"] = "0.25,0.25";
  EXPECT_THAT(error_of([&] { compile_onnx(library_, model, {}); }), HasSubstr("the metadata of 'net.onnx'"));
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
