#include "weft/deploy/onnx_preprocessing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/error.h"
#include "weft/base/rng.h"
#include "weft/data/pictures/image.h"
#include "weft/engine/onnx_session.h"
#include "weft/library/library.h"

namespace weft::deploy {
namespace {

constexpr int64_t kHeight = 20, kWidth = 16;

class OnnxPreprocessing : public testing::Test {
 protected:
  /// A network that gives what it reads: f32 [batch,3,20,16].
  static onnx::Model identity(int64_t opset) {
    onnx::Model model;
    model.ir_version = 8;
    model.opsets[""] = opset;
    onnx::ValueInfo info;
    info.kind = onnx::ValueInfo::Kind::tensor;
    info.name = "image";
    info.dtype = DType::f32;
    info.shape = {{{}, "batch"}, {3, ""}, {kHeight, ""}, {kWidth, ""}};
    model.graph.inputs = {info};
    info.name = "seen";
    model.graph.outputs = {info};
    model.graph.nodes = {onnx::node_with_output("Identity", {"image"}, "seen")};
    return model;
  }

  static engine::PictureInput pictures(int64_t resize) {
    return {.channels = 3,
            .height = kHeight,
            .width = kWidth,
            .resize = resize,
            .decodes_exactly = true,
            .mean = {0.25F, 0.5F, 0.75F},
            .deviation = {0.5F, 0.25F, 1.0F}};
  }

  static data::Image noise(int64_t height, int64_t width) {
    data::Image image{3, height, width, {}};
    RandomStream stream(mix(3, hash_name("pixels")));
    for (int64_t at = 0; at < 3 * height * width; ++at)
      image.pixels.push_back(static_cast<uint8_t>(stream.uniform() * 256));
    return image;
  }

  /// What the network reads of the picture, by the nodes of the model.
  std::vector<float> seen(const onnx::Model& model, const data::Image& image) const {
    engine::OnnxSession session(model, library_.ops, *device_, {});
    Tensor batch(DType::u8, Shape{1, 3, image.height, image.width});
    std::copy(image.pixels.begin(), image.pixels.end(), batch.data_as<uint8_t>());
    const auto outputs = session.run({{"pixels", batch}});
    const Tensor& tensor = *outputs.at("seen").tensor();
    EXPECT_EQ(to_string(tensor.type()), "f32[1,3,20,16]");
    return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.elements()};
  }

  const Library library_ = standard_library();
  const std::unique_ptr<Device> device_ = library_.device.make({.threads = 1, .kernels = library_.kernels});
};

TEST_F(OnnxPreprocessing, NormalisesPixelsOfTheNetworksSize) {
  onnx::Model model = identity(13);
  add_preprocessing(model, pictures(0));
  EXPECT_EQ(describe(model.graph.inputs.at(0)), "u8[batch,3,20,16]");
  const data::Image image = noise(kHeight, kWidth);
  const std::vector<float> values = seen(model, image);
  const float mean[] = {0.25F, 0.5F, 0.75F}, deviation[] = {0.5F, 0.25F, 1.0F};
  for (size_t at = 0; at < values.size(); ++at) {
    const size_t channel = at / (kHeight * kWidth);
    ASSERT_NEAR(values[at], (static_cast<float>(image.pixels[at]) / 255 - mean[channel]) / deviation[channel], 1e-5);
  }
}

/// Larger and smaller ones, upright and lying.
TEST_F(OnnxPreprocessing, ResizesPicturesOfAnySizeAsTheRunDid) {
  onnx::Model model = identity(18);
  const engine::PictureInput prepared = pictures(24);
  add_preprocessing(model, prepared);
  EXPECT_EQ(describe(model.graph.inputs.at(0)), "u8[batch,3,height,width]");
  for (const auto& [height, width] : {std::pair{61, 90}, {90, 61}, {24, 24}, {13, 40}}) {
    const data::Image image = noise(height, width);
    const data::Image shorter = data::resize_shorter(image, prepared.resize);
    std::vector<uint8_t> middle(3 * kHeight * kWidth);
    data::copy_middle(shorter, kHeight, kWidth, middle);
    const std::vector<float> values = seen(model, image);
    size_t differing = 0;
    for (size_t at = 0; at < values.size(); ++at) {
      const size_t channel = at / (kHeight * kWidth);
      const float pixel = (values[at] * prepared.deviation[channel] + prepared.mean[channel]) * 255;
      ASSERT_NEAR(pixel, middle[at], 1.001) << height << "x" << width << " at " << at;
      if (std::abs(pixel - middle[at]) > 0.01F) ++differing;
    }
    EXPECT_LE(differing, values.size() / 500) << height << "x" << width;  // sums at a half, rounded otherwise
  }
}

TEST_F(OnnxPreprocessing, OperatorsThatCannotResizeSoAreRefused) {
  onnx::Model model = identity(17);
  EXPECT_THAT([&] { add_preprocessing(model, pictures(24)); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("say --opset 18 or more")));
}

TEST_F(OnnxPreprocessing, AnInputThatIsNoPictureIsRefused) {
  onnx::Model model = identity(18);
  model.graph.inputs[0].shape->resize(2);
  EXPECT_THAT([&] { add_preprocessing(model, pictures(0)); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("only pictures are prepared")));
}

}  // namespace
}  // namespace weft::deploy
