// The models beside what their authors, torchvision and timm publish about them.
#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/error.h"
#include "weft/models/model.h"
#include "weft/ops/all.h"

namespace weft::models {
namespace {

int64_t trainable(const Model& model) {
  int64_t count = 0;
  for (const ParameterSpec& parameter : model.parameters)
    if (parameter.trainable) count += parameter.shape.elements();
  return count;
}

struct Published {
  std::string name;
  ModelOptions options;
  std::vector<int64_t> shape;
  int64_t classes, parameters;
  double giga_multiply_adds;  // as published
  double tolerance = 0.0051;  // of two decimals
};

// torchvision's documentation of its pretrained weights; timm for vit_tiny; the papers' tables for wide_resnet, whose
// parameters are those of the usual PyTorch version and whose multiply-adds are 5.2 there.
std::vector<Published> published() {
  const std::vector<int64_t> photo{3, 224, 224}, small{3, 32, 32};
  return {
      {"alexnet", {}, photo, 1000, 61100840, 0.71},
      {"vgg16", {}, photo, 1000, 138357544, 15.47},
      {"vgg16", {{"norm", "batch"}}, photo, 1000, 138365992, 15.47},
      {"resnet18", {}, photo, 1000, 11689512, 1.81},
      {"resnet34", {}, photo, 1000, 21797672, 3.66},
      {"resnet50", {}, photo, 1000, 25557032, 4.09},
      {"resnet101", {}, photo, 1000, 44549160, 7.80},
      {"resnet152", {}, photo, 1000, 60192808, 11.51},
      // The authors' repository: 110.93 million; the paper, at 416x416: 111 million.
      {"resnest269", {}, photo, 1000, 110929480, 22.4, 0.6},
      {"resnest269", {{"blocks", "3,4,6,3"}, {"stem", "32"}}, photo, 1000, 27483240, 5.39, 0.1},  // ResNeSt-50
      {"wide_resnet50_2", {}, photo, 1000, 68883240, 11.40},
      {"wide_resnet", {}, small, 10, 36479194, 5.24},
      {"wide_resnet", {{"depth", "16"}, {"width", "8"}}, small, 10, 10961370, 1.55},
      {"resnet20", {}, small, 10, 269722, 0.0405},  // the usual PyTorch version says 0.27 million, 41 MFLOPs
      {"resnet20", {{"depth", "56"}}, small, 10, 853018, 0.1254},
      {"densenet121", {}, photo, 1000, 7978856, 2.83},
      {"densenet121", {{"blocks", "6,12,32,32"}}, photo, 1000, 14149480, 3.36},  // densenet169
      {"densenet121", {{"blocks", "6,12,48,32"}}, photo, 1000, 20013928, 4.29},  // densenet201
      {"mobilenet_v2", {}, photo, 1000, 3504872, 0.30},
      {"mobilenet_v2", {{"width", "1.4"}}, photo, 1000, 6108776, 0.58},
      {"vit_tiny", {}, photo, 1000, 5717416, 1.3, 0.051},
      {"vit_tiny", {{"width", "384"}, {"heads", "6"}}, photo, 1000, 22050664, 4.6, 0.051},  // DeiT-S
  };
}

TEST(Zoo, HasThePublishedParametersAndMultiplyAdds) {
  const OpRegistry registry = ops::make_registry();
  for (const Published& p : published()) {
    SCOPED_TRACE(p.name + (p.options.empty() ? "" : " " + p.options.begin()->second));
    const Model model = build(registry, p.name, {1, p.shape, p.classes}, p.options, Mode::inference);
    EXPECT_EQ(trainable(model), p.parameters);
    EXPECT_NEAR(static_cast<double>(multiply_adds(model.graph)) / 1e9, p.giga_multiply_adds, p.tolerance);
  }
}

/// timm's table of benchmarks counts two operations more for each value that a batch norm gives, and the blur's nine.
double timm_giga_multiply_adds(const Model& model) {
  int64_t count = multiply_adds(model.graph);
  for (const Node& node : model.graph.nodes()) {
    const int64_t values = model.graph.type(node.outputs[0]).elements();
    if (node.op->name == "batch_norm_inference") count += 2 * values;
    if (node.op->name == "avg_pool2d" && !node.attributes.boolean("count_padding")) count += 9 * values;
  }
  return static_cast<double>(count) / 1e9;
}

// results/benchmark-infer-amp-nchw-pt113-cu117-rtx3090.csv of timm; its parameters have two decimals, these here are
// those of benchmarks/peer/models, whose training equals weft's (tools/peer_check.py).
TEST(Zoo, ResnetVariantsAreTimms) {
  const ModelOptions c{{"stem", "deep"}}, d{{"stem", "deep"}, {"shortcut", "average_pool"}};
  const ModelOptions blur{{"downsample", "blur"}};
  ModelOptions blur_d = d;
  blur_d.insert(*blur.begin());
  const std::vector<Published> variants{
      {"resnet50", {}, {3, 224, 224}, 1000, 25557032, 4.11},
      {"resnet50", c, {3, 224, 224}, 1000, 25576264, 4.35},
      {"resnet50", d, {3, 224, 224}, 1000, 25576264, 4.35},
      {"resnet101", d, {3, 224, 224}, 1000, 44568392, 8.08},
      {"resnet50", blur, {3, 224, 224}, 1000, 25557032, 5.16},
      {"resnet50", blur_d, {3, 224, 224}, 1000, 25576264, 5.40},
  };
  const OpRegistry registry = ops::make_registry();
  for (const Published& p : variants) {
    const Model model = build(registry, p.name, {1, p.shape, p.classes}, p.options, Mode::inference);
    EXPECT_EQ(trainable(model), p.parameters) << p.giga_multiply_adds;
    EXPECT_NEAR(timm_giga_multiply_adds(model), p.giga_multiply_adds, p.tolerance);
  }
}

// Convolutions and the last layer of benchmarks/peer/models, counted by hooks on PyTorch's modules.
TEST(Zoo, LargerMapsCostWhatTheyDoInPyTorch) {
  const OpRegistry registry = ops::make_registry();
  const std::vector<std::pair<ModelOptions, int64_t>> variants{{{{"last_stride", "1"}}, 6208618496},
                                                               {{{"stem_reduction", "convolution"}}, 15996551168},
                                                               {{{"stem_reduction", "pooling"}}, 16350593024}};
  for (const auto& [options, expected] : variants)
    EXPECT_EQ(multiply_adds(build(registry, "resnet50", {1, {3, 224, 224}, 1000}, options, Mode::inference).graph),
              expected);
}

class ZooModel : public ::testing::Test {
 protected:
  Model make(const std::string& name, std::vector<int64_t> shape, const ModelOptions& options = {}) {
    return build(registry_, name, {2, std::move(shape), 10}, options, Mode::training);
  }
  std::string error(const std::string& name, std::vector<int64_t> shape, const ModelOptions& options = {}) {
    try {
      make(name, std::move(shape), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::map<std::string, ParameterSpec> parameters(const std::string& name, std::vector<int64_t> shape,
                                                  const ModelOptions& options = {}) {
    std::map<std::string, ParameterSpec> by_name;
    for (const ParameterSpec& parameter : make(name, std::move(shape), options).parameters)
      by_name[parameter.name] = parameter;
    return by_name;
  }
  OpRegistry registry_ = ops::make_registry();
};

TEST_F(ZooModel, SmallStemsKeepSmallImagesLarge) {
  const auto sides_of = [&](const std::string& model, int64_t pixels, const std::string& last,
                            const ModelOptions& options = {}) {
    const Model built = make(model, {3, pixels, pixels}, options);
    return built.graph.shape(built.graph.find_value(last))[2];
  };
  EXPECT_EQ(sides_of("densenet121", 32, "features.relu5"), 4);
  EXPECT_EQ(sides_of("densenet121", 64, "features.relu5"), 2);
  EXPECT_EQ(sides_of("mobilenet_v2", 32, "features.18.2"), 4);
  EXPECT_EQ(sides_of("mobilenet_v2", 64, "features.18.2"), 2);
  EXPECT_EQ(sides_of("densenet121", 32, "features.relu5", {{"stem", "imagenet"}}), 1);
}

/// Deep stems and averaged shortcuts have timm's names, so that its weights load.
TEST_F(ZooModel, NamesOfResnet50d) {
  const auto d = parameters("resnet50", {3, 64, 64}, {{"stem", "deep"}, {"shortcut", "average_pool"}});
  EXPECT_EQ(d.at("conv1.0.weight").shape, Shape({32, 3, 3, 3}));
  EXPECT_EQ(d.at("conv1.4.running_mean").shape, Shape({32}));
  EXPECT_EQ(d.at("conv1.6.weight").shape, Shape({64, 32, 3, 3}));
  EXPECT_EQ(d.at("layer1.0.downsample.1.weight").shape, Shape({256, 64, 1, 1}));
  EXPECT_EQ(d.at("layer4.0.downsample.2.bias").shape, Shape({2048}));
  EXPECT_FALSE(d.contains("conv1.weight") || d.contains("layer1.0.downsample.0.weight"));
  // resnetblur50 has those of resnet50.
  const auto blur = parameters("resnet50", {3, 64, 64}, {{"downsample", "blur"}});
  for (const auto& [name, parameter] : parameters("resnet50", {3, 64, 64}))
    EXPECT_EQ(blur.at(name).shape, parameter.shape) << name;
}

TEST_F(ZooModel, ResnetOptionsEnlargeTheMaps) {
  const auto last_map = [&](const ModelOptions& options, int64_t pixels = 128) {
    const Model model = make("resnet18", {3, pixels, pixels}, options);
    return model.graph.shape(model.graph.find_value("layer4.1.out"));
  };
  EXPECT_EQ(last_map({}), Shape({2, 512, 4, 4}));
  EXPECT_EQ(last_map({{"last_stride", "1"}}), Shape({2, 512, 8, 8}));
  for (const char* stem : {"imagenet", "deep"})
    for (const char* reduction : {"convolution", "pooling"})
      EXPECT_EQ(last_map({{"stem", stem}, {"stem_reduction", reduction}}), Shape({2, 512, 8, 8})) << stem << reduction;
  EXPECT_EQ(last_map({{"width", "16"}}), Shape({2, 128, 4, 4}));
  // 100 pixels: 25, 13, 7, 4. Pooling and blur round up as strided convolutions do.
  for (const ModelOptions& options :
       std::vector<ModelOptions>{{}, {{"shortcut", "average_pool"}}, {{"downsample", "blur"}}})
    EXPECT_EQ(last_map(options, 100), Shape({2, 512, 4, 4}));
}

TEST_F(ZooModel, Resnet50ForPhotosOf128IsResNetD) {
  const Model small = make("resnet50_128", {3, 128, 128});
  const Model resnet_d = make("resnet50", {3, 128, 128}, {{"stem", "deep"}, {"shortcut", "average_pool"}});
  EXPECT_EQ(multiply_adds(small.graph), multiply_adds(resnet_d.graph));
  EXPECT_EQ(trainable(small), trainable(resnet_d));
  // What it chooses are options: with resnet50's own it is resnet50.
  const Model plain = make("resnet50_128", {3, 128, 128}, {{"stem", "imagenet"}, {"shortcut", "strided"}});
  const Model resnet50 = make("resnet50", {3, 128, 128});
  EXPECT_EQ(multiply_adds(plain.graph), multiply_adds(resnet50.graph));
  EXPECT_EQ(trainable(plain), trainable(resnet50));
  EXPECT_EQ(parameters("resnet50_128", {3, 32, 32}).at("conv1.weight").shape, Shape({64, 3, 3, 3}));
}

TEST_F(ZooModel, ResidualPathsBeginAtZeroWhereAsked) {
  using Kind = Initializer::Kind;
  for (const auto& [model, last] : std::map<std::string, std::string>{{"resnet18", "bn2"}, {"resnet50", "bn3"}}) {
    EXPECT_EQ(parameters(model, {3, 64, 64}).at("layer2.1." + last + ".weight").initializer.kind, Kind::ones);
    const auto zero = parameters(model, {3, 64, 64}, {{"zero_init_residual", "yes"}});
    EXPECT_EQ(zero.at("layer2.1." + last + ".weight").initializer.kind, Kind::zeros);
    EXPECT_EQ(zero.at("layer2.0." + last + ".weight").initializer.kind, Kind::zeros);
    for (const char* other : {"bn1.weight", "layer2.1.bn1.weight", "layer2.0.downsample.1.weight"})
      EXPECT_EQ(zero.at(other).initializer.kind, Kind::ones) << other;
  }
}

TEST_F(ZooModel, StemReductionOfASmallStem) {
  EXPECT_EQ(error("resnet18", {3, 32, 32}, {{"stem_reduction", "pooling"}}),
            "[resnet18] option stem_reduction is for the stems imagenet and deep: stem 'small' keeps the image's size; "
            "leave it away, or choose one of these");
}
TEST_F(ZooModel, BlurOfASinglePixel) {
  const ModelOptions blur{{"stem", "imagenet"}, {"downsample", "blur"}};
  EXPECT_EQ(error("resnet18", {3, 16, 40}, blur),
            "[resnet18] downsample=blur halves maps of at least 2 x 2 values, those before 'layer4.0.blur' are 1 x 3; "
            "take larger images, or downsample=strided");
  EXPECT_EQ(error("resnet18", {3, 17, 40}, blur), "no error");
}

TEST_F(ZooModel, SmallHeadOfVggIsOneLayer) {
  EXPECT_EQ(parameters("vgg16", {3, 32, 32}).at("classifier.weight").shape, Shape({10, 512}));
  EXPECT_EQ(parameters("vgg16", {3, 32, 32}, {{"head", "imagenet"}}).at("classifier.0.weight").shape,
            Shape({4096, 512 * 49}));
}

TEST_F(ZooModel, NamesOfTorchvisionAndTimm) {
  EXPECT_EQ(parameters("alexnet", {3, 224, 224}).at("classifier.6.bias").shape, Shape({10}));
  EXPECT_EQ(parameters("vgg16", {3, 64, 64}).at("features.28.weight").shape, Shape({512, 512, 3, 3}));
  EXPECT_EQ(parameters("vgg16", {3, 64, 64}, {{"norm", "batch"}}).at("features.41.running_mean").shape, Shape({512}));
  EXPECT_EQ(parameters("densenet121", {3, 64, 64}).at("features.denseblock4.denselayer16.conv2.weight").shape,
            Shape({32, 128, 3, 3}));
  EXPECT_EQ(parameters("densenet121", {3, 64, 64}).at("features.transition3.conv.weight").shape,
            Shape({512, 1024, 1, 1}));
  EXPECT_EQ(parameters("mobilenet_v2", {3, 64, 64}).at("features.1.conv.0.0.weight").shape, Shape({32, 1, 3, 3}));
  EXPECT_EQ(parameters("mobilenet_v2", {3, 64, 64}).at("features.17.conv.3.running_var").shape, Shape({320}));
  EXPECT_EQ(parameters("vit_tiny", {3, 224, 224}).at("pos_embed").shape, Shape({1, 197, 192}));
  EXPECT_EQ(parameters("vit_tiny", {3, 224, 224}).at("blocks.11.mlp.fc2.weight").shape, Shape({192, 768}));
}

TEST_F(ZooModel, StartsAsItsPeer) {
  using Kind = Initializer::Kind;
  const auto depthwise = parameters("mobilenet_v2", {3, 64, 64}).at("features.1.conv.0.0.weight").initializer;
  EXPECT_DOUBLE_EQ(depthwise.scale, std::sqrt(2.0 / (32 * 9)));  // PyTorch's fan out does not look at groups
  const auto dense = parameters("densenet121", {3, 64, 64});
  EXPECT_DOUBLE_EQ(dense.at("features.conv0.weight").initializer.scale, std::sqrt(2.0 / (3 * 49)));
  EXPECT_EQ(dense.at("classifier.weight").initializer.kind, Kind::uniform);
  EXPECT_EQ(dense.at("classifier.bias").initializer.kind, Kind::zeros);
  const auto vgg = parameters("vgg16", {3, 64, 64});
  EXPECT_EQ(vgg.at("features.0.bias").initializer.kind, Kind::zeros);
  EXPECT_DOUBLE_EQ(vgg.at("classifier.0.weight").initializer.scale, 0.01);
  const auto vit = parameters("vit_tiny", {3, 64, 64});
  EXPECT_DOUBLE_EQ(vit.at("cls_token").initializer.scale, 0.02);
  EXPECT_FALSE(vit.at("pos_embed").decay);
}

TEST_F(ZooModel, PresetsOfTheTransformer) {
  const auto small = parameters("transformer_lm", {64}, {{"preset", "small"}});
  EXPECT_EQ(small.at("blocks.5.attn.qkv.weight").shape, Shape({3 * 384, 384}));
  EXPECT_FALSE(small.contains("blocks.6.attn.qkv.weight"));
  const auto mixed = parameters("transformer_lm", {64}, {{"preset", "base"}, {"layers", "2"}});
  EXPECT_EQ(mixed.at("blocks.1.mlp.fc1.weight").shape, Shape({4 * 768, 768}));
  EXPECT_FALSE(mixed.contains("blocks.2.mlp.fc1.weight"));
}
/// 124,439,808 in GPT-2, which shares the embedding with the head and has room for 1024 tokens.
TEST_F(ZooModel, BasePresetIsGpt2) {
  const Model model = build(registry_, "transformer_lm", {1, {1024}, 50257}, {{"preset", "base"}}, Mode::inference);
  EXPECT_EQ(trainable(model), 124439808 + 50257 * 768);
}

TEST_F(ZooModel, ImagesThatAreTooSmall) {
  for (const auto& [name, pixels, least] :
       std::vector<std::tuple<std::string, int64_t, int64_t>>{{"alexnet", 62, 63},
                                                              {"vgg16", 31, 32},
                                                              {"wide_resnet", 7, 8},
                                                              {"resnet20", 7, 8},
                                                              {"densenet121", 7, 8},
                                                              {"vit_tiny", 3, 4},
                                                              {"airbench94", 8, 9}}) {
    EXPECT_EQ(error(name, {3, pixels, pixels}),
              fmt::format("[{}] wants images (channels,height,width) of at least {} x {} pixels, got samples of shape "
                          "(3,{},{}); resize them, or choose another model",
                          name, least, least, pixels, pixels));
    EXPECT_EQ(error(name, {3, least, least}), "no error");
  }
}
TEST_F(ZooModel, LargeStemWantsLargeImages) {
  const ModelOptions imagenet{{"stem", "imagenet"}};
  EXPECT_NE(error("densenet121", {3, 28, 28}, imagenet).find("at least 29 x 29 pixels"), std::string::npos);
  EXPECT_EQ(error("densenet121", {3, 29, 29}, imagenet), "no error");
}
TEST_F(ZooModel, UnetGivesAClassToEveryPixel) {
  const Model model = make("unet_small", {3, 20, 17});  // 17 columns become 8 and 16 again, padded to 17
  EXPECT_EQ(model.graph.shape(model.logits), Shape({2 * 20 * 17, 10}));
  EXPECT_EQ(model.graph.shape(model.labels), Shape({2 * 20 * 17}));
  EXPECT_EQ(parameters("unet_small", {3, 32, 32}).at("up1.up.weight").shape, Shape({256, 128, 2, 2}));
}

TEST_F(ZooModel, AutoencoderAimsAtItsInput) {
  const Model model = make("autoencoder", {3, 27, 30});
  EXPECT_EQ(model.graph.shape(model.logits), Shape({2, 3 * 27 * 30}));
  EXPECT_EQ(model.graph.producer(model.labels)->op->name, "reshape");
  EXPECT_EQ(model.graph.producer(model.labels)->inputs[0], model.input);
}
TEST_F(ZooModel, TransposedConvolutionsCountLikeConvolutions) {
  const Model model = make("autoencoder", {1, 8, 8}, {{"widths", "4"}, {"code", "1"}});
  // Per image: 4x4 small positions x 4 channels x 9 weights each way, 64 numbers to the code and back.
  EXPECT_EQ(multiply_adds(model.graph), 2 * (4 * 4 * 4 * 9 + 64 + 64 + 4 * 4 * 4 * 9));
}

/// Jordan 2024: 1.97 million parameters; 3.6e14 operations for 9.9 epochs of 50,000 images, a step being three forward
/// passes and a multiply-add two operations.
TEST_F(ZooModel, Airbench94IsThePublishedNetwork) {
  const Model model = build(registry_, "airbench94", {1, {3, 32, 32}, 10}, {}, Mode::inference);
  EXPECT_EQ(trainable(model), 24 * 13 + 9 * (24 * 64 + 64 * 64 + 64 * 256 + 3 * 256 * 256) + 2 * 64 + 4 * 256 + 2560);
  const auto multiplied = static_cast<double>(multiply_adds(model.graph));
  EXPECT_EQ(multiplied, 118147360);  // 961 * 24 * 12 + 9 * (961 * 24 * 64 + 225 * 64 * (64 + 256) + ...
  EXPECT_NEAR(multiplied * 3 * 2 * 50000 * 9.9, 3.6e14, 0.1e14);
  const auto by_name = parameters("airbench94", {3, 32, 32});
  EXPECT_EQ(by_name.at("whiten.weight").initializer.kind, Initializer::Kind::whitening);
  EXPECT_EQ(by_name.at("whiten.weight").shape, Shape({24, 3, 2, 2}));
  EXPECT_EQ(by_name.at("group3.conv1.weight").initializer.kind, Initializer::Kind::identity);
  EXPECT_FALSE(by_name.contains("group1.norm1.weight")) << "norms only shift";
  EXPECT_FALSE(by_name.contains("head.bias"));
}
TEST_F(ZooModel, Airbench94KeepsTwoFifthsOfEachBatchsStatistics) {
  const Model model = make("airbench94", {1, 28, 28});
  int64_t averages = 0;
  for (const Node& node : model.graph.nodes())
    if (node.op->name == "running_average") {
      EXPECT_DOUBLE_EQ(node.attributes.real("momentum"), 0.4);
      ++averages;
    }
  EXPECT_EQ(averages, 12);
  EXPECT_EQ(model.graph.shape(model.graph.find_value("group3.gelu2")), Shape({2, 256, 3, 3}));
}

TEST_F(ZooModel, DepthOfNoWideResnet) {
  EXPECT_EQ(error("resnet20", {3, 32, 32}, {{"depth", "27"}}),
            "[resnet20] a depth of 27 is not 6 n + 2; choose 26 or 32");
  EXPECT_EQ(error("wide_resnet", {3, 32, 32}, {{"depth", "27"}}),
            "[wide_resnet] a depth of 27 is not 6 n + 4; choose 22 or 28");
}
TEST_F(ZooModel, BrokenPatches) {
  EXPECT_EQ(error("vit_tiny", {3, 100, 96}),
            "[vit_tiny] images of 100 x 96 pixels are no whole number of patches of 16 x 16; choose another option "
            "patch, or resize them");
}
TEST_F(ZooModel, WidthThatIsNoNumber) {
  EXPECT_EQ(error("mobilenet_v2", {3, 32, 32}, {{"width", "nan"}}),
            "[mobilenet_v2] option width wants a number from 0.05 to 8, got 'nan'");
}

}  // namespace
}  // namespace weft::models
