#include "weft/models/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "weft/autodiff/autodiff.h"
#include "weft/base/error.h"
#include "weft/graph/verify.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft::models {
namespace {

class Models : public ::testing::Test {
 protected:
  Model make(const std::string& name, const ModelInput& input, const ModelOptions& options = {},
             Mode mode = Mode::training) {
    return build(registry_, name, input, options, mode);
  }
  static int64_t trainable(const Model& model) {
    int64_t count = 0;
    for (const ParameterSpec& parameter : model.parameters)
      if (parameter.trainable) count += parameter.shape.elements();
    return count;
  }
  std::string error(const std::string& name, const ModelInput& input, const ModelOptions& options, ErrorKind kind) {
    try {
      make(name, input, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    return "";
  }
  std::string usage_error(const std::string& name, const ModelOptions& options = {}) {
    return error(name, {2, {1, 28, 28}, 10}, options, ErrorKind::usage);
  }

  OpRegistry registry_ = ops::make_registry();
};

TEST_F(Models, ParametersOfLeNet5) {
  EXPECT_EQ(trainable(make("lenet5", {2, {1, 28, 28}, 10})), 61706);
  EXPECT_EQ(trainable(make("lenet5", {2, {3, 32, 32}, 10})), 61706 + 2 * 6 * 25);
}
/// 6,573,120 in the DAWNBench entry, whose last layer has no bias.
TEST_F(Models, ParametersOfResNet9) {
  EXPECT_EQ(trainable(make("resnet9", {2, {3, 32, 32}, 10}, {{"width", "64"}})), 6573120 + 10);
}
TEST_F(Models, ParametersOfMlp) {
  EXPECT_EQ(trainable(make("mlp", {2, {1, 28, 28}, 10})), 785 * 512 + 513 * 256 + 257 * 10);
  EXPECT_EQ(trainable(make("mlp", {2, {8}, 3}, {{"hidden", "5"}})), 9 * 5 + 6 * 3);
}
TEST_F(Models, ParametersOfTransformer) {
  const int64_t d = 128, block = 4 * d + (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d);
  EXPECT_EQ(trainable(make("transformer_lm", {2, {64}, 65})), 65 * d + 64 * d + 4 * block + 2 * d + 65 * d);
}

TEST_F(Models, ResNetKeepsSmallImagesLarge) {
  const auto last_stage = [&](const ModelOptions& options, std::vector<int64_t> shape) {
    const Model model = make("resnet18", {2, std::move(shape), 10}, options);
    return model.graph.shape(model.graph.find_value("layer4.1.out"));
  };
  EXPECT_EQ(last_stage({}, {3, 32, 32}), Shape({2, 512, 4, 4}));
  EXPECT_EQ(last_stage({{"stem", "imagenet"}}, {3, 32, 32}), Shape({2, 512, 1, 1}));
  EXPECT_EQ(last_stage({}, {3, 64, 64}), Shape({2, 512, 2, 2}));
}

TEST_F(Models, NamesOfTorchvision) {
  const Model model = make("resnet50", {2, {3, 224, 224}, 1000});
  std::map<std::string, Shape> shapes;
  for (const ParameterSpec& parameter : model.parameters) shapes[parameter.name] = parameter.shape;
  EXPECT_EQ(shapes.at("conv1.weight"), Shape({64, 3, 7, 7}));
  EXPECT_EQ(shapes.at("bn1.running_var"), Shape({64}));
  EXPECT_EQ(shapes.at("layer1.0.downsample.0.weight"), Shape({256, 64, 1, 1}));
  EXPECT_EQ(shapes.at("layer2.0.conv2.weight"), Shape({128, 128, 3, 3}));
  EXPECT_EQ(shapes.at("layer4.2.bn3.bias"), Shape({2048}));
  EXPECT_EQ(shapes.at("fc.weight"), Shape({1000, 2048}));
  // 161 parameters and, for each of 53 batch norms, two statistics.
  EXPECT_EQ(shapes.size(), 161u + 2 * 53);
}

TEST_F(Models, EveryModelGivesLogitsAndGradientsToAllParameters) {
  for (const ModelEntry& entry : all_models()) {
    SCOPED_TRACE(entry.name);
    ModelInput input = entry.default_input;
    input.batch = 2;
    if (input.shape.size() == 3 && input.shape[1] > 64) input.shape = {3, 64, 64};
    Model model = make(entry.name, input);
    const TensorType labels = model.graph.type(model.labels);
    const bool has_classes = labels.dtype == DType::i32;
    ValueId losses = model.losses;
    if (!losses.valid()) {
      EXPECT_EQ(model.graph.shape(model.logits), has_classes ? Shape({labels.shape[0], input.classes}) : labels.shape);
      losses = has_classes ? ops::cross_entropy(model.graph, model.logits, model.labels)
                           : ops::subtract(model.graph, model.logits, model.labels);
    }
    const ValueId loss = ops::reduce_mean(model.graph, losses);
    std::vector<ValueId> targets;
    for (const ParameterSpec& parameter : model.parameters)
      if (parameter.trainable) targets.push_back(model.graph.find_input(parameter.name)->value);
    const std::vector<ValueId> gradients = add_gradients(model.graph, loss, targets);
    for (size_t index = 0; index < targets.size(); ++index) {
      EXPECT_EQ(model.graph.shape(gradients[index]), model.graph.shape(targets[index]));
      EXPECT_NE(model.graph.producer(gradients[index])->op->name, "constant") << model.graph.value(targets[index]).name;
    }
    verify(model.graph, entry.name);
  }
}

TEST_F(Models, InferenceHasTheSameParametersAndNoUpdates) {
  for (const ModelEntry& entry : all_models()) {
    SCOPED_TRACE(entry.name);
    ModelInput input = entry.default_input;
    input.batch = 2;
    const Model training = make(entry.name, input), inference = make(entry.name, input, {}, Mode::inference);
    ASSERT_EQ(training.parameters.size(), inference.parameters.size());
    size_t statistics = 0;
    for (size_t index = 0; index < training.parameters.size(); ++index) {
      EXPECT_EQ(training.parameters[index].name, inference.parameters[index].name);
      statistics += training.parameters[index].trainable ? 0 : 1;
    }
    EXPECT_EQ(training.graph.updates().size(), statistics);
    EXPECT_TRUE(inference.graph.updates().empty());
  }
}

TEST_F(Models, BiasAndNormDoNotDecay) {
  for (const char* name : {"resnet18", "lenet5"})
    for (const ParameterSpec& parameter : make(name, {2, {3, 32, 32}, 10}).parameters)
      EXPECT_EQ(parameter.decay, parameter.shape.rank() > 1) << parameter.name;
}

TEST_F(Models, DropoutReadsSeedAndStepInTrainingOnly) {
  const ModelInput input{2, {16}, 65};
  const auto reads = [](const Model& model) {
    return model.graph.find_input("seed") != nullptr && model.graph.find_input("step") != nullptr;
  };
  EXPECT_FALSE(reads(make("transformer_lm", input)));
  EXPECT_TRUE(reads(make("transformer_lm", input, {{"dropout", "0.1"}})));
  EXPECT_FALSE(reads(make("transformer_lm", input, {{"dropout", "0.1"}}, Mode::inference)));
}
TEST_F(Models, EveryDropoutHasItsStream) {
  const Model model = make("transformer_lm", {2, {16}, 65}, {{"dropout", "0.1"}, {"layers", "2"}});
  std::set<int64_t> streams;
  for (const Node& node : model.graph.nodes())
    if (node.op->name == "dropout") streams.insert(node.attributes.integer("stream"));
  EXPECT_EQ(streams.size(), 5u);  // embeddings, and two per block
}

TEST(Initialize, DependsOnSeedAndNameOnly) {
  const auto first = [](const std::string& name, uint64_t seed) {
    return *initialize({name, {3}, {Initializer::Kind::normal, 1}}, seed).data_as<float>();
  };
  EXPECT_EQ(first("a", 1), first("a", 1));
  EXPECT_NE(first("a", 1), first("b", 1));
  EXPECT_NE(first("a", 1), first("a", 2));
}
TEST(Initialize, HasTheDeviationAsked) {
  const auto deviation = [](Initializer initializer) {
    const Tensor tensor = initialize({"w", {100, 100}, initializer}, 7);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < 10000; ++i) {
      const double value = tensor.data_as<float>()[i];
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(sum / 10000, 0, 0.02);
    return std::sqrt(squares / 10000);
  };
  EXPECT_NEAR(deviation({Initializer::Kind::normal, 0.5}), 0.5, 0.02);
  EXPECT_NEAR(deviation({Initializer::Kind::uniform, 0.5}), 0.5 / std::sqrt(3), 0.01);
}
/// torch.nn.init.dirac_ of the first filters.
TEST(Initialize, IdentityPassesChannelsOn) {
  const Tensor tensor = initialize({"w", {3, 2, 3, 3}, {Initializer::Kind::identity, 0.25}}, 7);
  const float* weight = tensor.data_as<float>();
  for (int64_t i = 0; i < 36; ++i) EXPECT_EQ(weight[i], i == 4 || i == 18 + 9 + 4 ? 1 : 0) << i;
  for (int64_t i = 36; i < 54; ++i) {
    EXPECT_NE(weight[i], 0);
    EXPECT_LE(std::abs(weight[i]), 0.25f);
  }
}
TEST(Initialize, WhiteningWithoutDataPassesPixelsOn) {
  const Tensor tensor = initialize({"w", {8, 1, 2, 2}, {Initializer::Kind::whitening, 3}}, 7);
  for (int64_t filter = 0; filter < 4; ++filter)
    for (int64_t pixel = 0; pixel < 4; ++pixel) {
      EXPECT_EQ(tensor.data_as<float>()[4 * filter + pixel], filter == pixel ? 0.5f : 0);
      EXPECT_EQ(tensor.data_as<float>()[16 + 4 * filter + pixel], filter == pixel ? -0.5f : 0);
    }
}
TEST_F(Models, StartAsInTorchvision) {
  for (const ParameterSpec& parameter : make("resnet18", {2, {3, 32, 32}, 10}).parameters) {
    if (parameter.name == "layer1.0.conv1.weight") {
      EXPECT_DOUBLE_EQ(parameter.initializer.scale, std::sqrt(2.0 / (64 * 9)));
    }
    if (parameter.name == "fc.weight" || parameter.name == "fc.bias") {
      EXPECT_DOUBLE_EQ(parameter.initializer.scale, 1 / std::sqrt(512.0));
    }
    if (parameter.name == "bn1.weight" || parameter.name == "bn1.running_var") {
      EXPECT_EQ(parameter.initializer.kind, Initializer::Kind::ones);
    }
  }
}

TEST_F(Models, UnknownModel) {
  EXPECT_EQ(usage_error("resnet8"), "there is no model 'resnet8' (`weft models` lists them); did you mean 'resnet9'?");
}
TEST_F(Models, UnknownOption) {
  EXPECT_EQ(usage_error("resnet9", {{"widht", "32"}}), "[resnet9] there is no option 'widht'; did you mean 'width'?");
}
TEST_F(Models, OptionOfAModelWithoutAny) {
  EXPECT_EQ(usage_error("lenet5", {{"width", "3"}}), "[lenet5] there is no option 'width': the model has none");
}
TEST_F(Models, OptionThatIsNoNumber) {
  EXPECT_EQ(usage_error("resnet9", {{"width", "wide"}}),
            "[resnet9] option width wants a whole number from 1 to 4096, got 'wide'");
}
TEST_F(Models, AbsurdOption) {
  EXPECT_EQ(usage_error("resnet9", {{"width", "99999999999999999999"}}),
            "[resnet9] option width wants a whole number from 1 to 4096, got '99999999999999999999'");
}
TEST_F(Models, ListWithAHole) {
  EXPECT_EQ(usage_error("mlp", {{"hidden", "512,,10"}}),
            "[mlp] option hidden wants whole numbers from 1 to 1048576, separated by commas, got '512,,10'");
}
TEST_F(Models, UnknownStem) {
  EXPECT_EQ(usage_error("resnet18", {{"stem", "cifar"}}),
            "[resnet18] option stem wants one of imagenet, small, deep, got 'cifar'");
}
TEST_F(Models, CertainDropout) {
  EXPECT_EQ(error("transformer_lm", {2, {16}, 65}, {{"dropout", "1"}}, ErrorKind::usage),
            "[transformer_lm] option dropout wants a number from 0 to below 1, got '1'");
}
TEST_F(Models, HeadsThatDoNotDivide) {
  EXPECT_EQ(error("transformer_lm", {2, {16}, 65}, {{"heads", "3"}}, ErrorKind::usage),
            "[transformer_lm] width 128 cannot be split into 3 heads; choose a multiple of 3");
}
TEST_F(Models, ImageTooSmall) {
  EXPECT_EQ(error("lenet5", {2, {1, 8, 8}, 10}, {}, ErrorKind::shape),
            "[lenet5] wants images (channels,height,width) of at least 12 x 12 pixels, got samples of "
            "shape (1,8,8); resize them, or choose another model");
}
TEST_F(Models, ImagesForALanguageModel) {
  EXPECT_EQ(error("transformer_lm", {2, {1, 28, 28}, 10}, {}, ErrorKind::shape),
            "[transformer_lm] wants sequences of tokens (length), got samples of shape (1,28,28); "
            "choose another model");
}
TEST_F(Models, RowsForAnImageModel) {
  EXPECT_EQ(error("resnet18", {2, {784}, 10}, {}, ErrorKind::shape),
            "[resnet18] wants images (channels,height,width) of at least 1 x 1 pixels, got samples of "
            "shape (784); resize them, or choose another model");
}
TEST_F(Models, EmptyBatch) {
  EXPECT_EQ(error("mlp", {0, {8}, 10}, {}, ErrorKind::usage), "[mlp] the batch must hold at least 1 sample, got 0");
}
TEST_F(Models, NoClasses) {
  EXPECT_EQ(error("mlp", {1, {8}, 0}, {}, ErrorKind::usage), "[mlp] there must be at least 1 class, got 0");
}
TEST_F(Models, AbsurdImages) {
  EXPECT_EQ(error("mlp", {1, {1, int64_t{1} << 40, int64_t{1} << 40}, 10}, {}, ErrorKind::shape),
            "[mlp] cannot be built for a batch of 1 samples (1,1099511627776,1099511627776) of 10 classes: sizes must "
            "be positive and within reason");
}
TEST_F(Models, OneImageOfOnePixelPerChannelCannotBeNormalised) {
  const std::string message = error("resnet18", {1, {3, 32, 32}, 10}, {{"stem", "imagenet"}}, ErrorKind::shape);
  EXPECT_NE(message.find("has one value per channel, which has no variance"), std::string::npos) << message;
}

}  // namespace
}  // namespace weft::models
