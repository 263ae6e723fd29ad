// Recurrent classifiers: PyTorch's names, what is counted, and who reads what.
#include <gtest/gtest.h>

#include <map>

#include "weft/base/error.h"
#include "weft/models/model.h"
#include "weft/ops/all.h"

namespace weft::models {
namespace {

class LstmClassifier : public ::testing::Test {
 protected:
  Model make(const ModelInput& input, const ModelOptions& options = {}, Mode mode = Mode::training) {
    return build(registry_, "lstm_classifier", input, options, mode);
  }
  static std::map<std::string, ParameterSpec> by_name(const Model& model) {
    std::map<std::string, ParameterSpec> parameters;
    for (const ParameterSpec& parameter : model.parameters) parameters[parameter.name] = parameter;
    return parameters;
  }

  const ModelInput images_{2, {3, 20, 14}, 10}, tokens_{2, {9}, 4};
  OpRegistry registry_ = ops::make_registry();
};

// {k: tuple(v.shape) for k, v in nn.LSTM(3 * 14, 16, 2, bidirectional=True).state_dict().items()}
TEST_F(LstmClassifier, HasPyTorchsNamesAndShapes) {
  const auto parameters = by_name(make(images_, {{"layers", "2"}, {"width", "16"}, {"bidirectional", "yes"}}));
  std::map<std::string, Shape> wanted{{"fc.weight", {10, 32}}, {"fc.bias", {10}}};
  for (const std::string direction : {"", "_reverse"})
    for (const std::string layer : {"_l0", "_l1"}) {
      wanted["rnn.weight_ih" + layer + direction] = {64, layer == "_l0" ? 42 : 32};
      wanted["rnn.weight_hh" + layer + direction] = {64, 16};
      wanted["rnn.bias_ih" + layer + direction] = {64};
      wanted["rnn.bias_hh" + layer + direction] = {64};
    }
  ASSERT_EQ(parameters.size(), wanted.size());
  for (const auto& [name, shape] : wanted) {
    ASSERT_TRUE(parameters.contains(name)) << name;
    EXPECT_EQ(parameters.at(name).shape, shape) << name;
    EXPECT_EQ(parameters.at(name).decay, shape.rank() > 1) << name;
  }
  EXPECT_EQ(parameters.at("rnn.weight_ih_l0").initializer.kind, Initializer::Kind::uniform);
  EXPECT_EQ(parameters.at("rnn.weight_ih_l0").initializer.scale, 0.25);  // 1 / sqrt(width), whatever the fan in
}

TEST_F(LstmClassifier, GruHasThreeGates) {
  const auto parameters = by_name(make(images_, {{"cell", "gru"}, {"width", "16"}}));
  EXPECT_EQ(parameters.at("rnn.weight_ih_l0").shape, Shape({48, 42}));
  EXPECT_EQ(parameters.at("rnn.bias_hh_l0").shape, Shape({48}));
}

TEST_F(LstmClassifier, ReadsTokensThroughAnEmbedding) {
  const Model model = make(tokens_, {{"vocabulary", "30"}, {"embedding", "7"}, {"width", "16"}});
  EXPECT_EQ(model.graph.shape(model.input), Shape({2, 9}));
  EXPECT_EQ(model.graph.shape(model.labels), Shape({2}));
  EXPECT_EQ(model.graph.shape(model.logits), Shape({2, 4}));
  const auto parameters = by_name(model);
  EXPECT_EQ(parameters.at("embedding.weight").shape, Shape({30, 7}));
  EXPECT_EQ(parameters.at("embedding.weight").initializer.scale, 1);  // as nn.Embedding
  EXPECT_EQ(parameters.at("rnn.weight_ih_l0").shape, Shape({64, 7}));
}

TEST_F(LstmClassifier, CountsBothProductsOfEachStep) {
  const int64_t steps = 20, width = 128, features = 3 * 14;
  EXPECT_EQ(multiply_adds(make({1, {3, 20, 14}, 10}, {}, Mode::inference).graph),
            steps * 4 * width * (features + width) + width * 10);
  EXPECT_EQ(multiply_adds(make({1, {3, 20, 14}, 10}, {{"cell", "gru"}}, Mode::inference).graph),
            steps * 3 * width * (features + width) + width * 10);
}

TEST_F(LstmClassifier, DropsBetweenLayersAndBeforeTheLast) {
  const auto dropouts = [&](Mode mode) {
    int count = 0;
    const Model model = make(images_, {{"layers", "3"}, {"dropout", "0.3"}}, mode);
    for (const Node& node : model.graph.nodes()) count += node.op->name == "dropout" ? 1 : 0;
    return count;
  };
  EXPECT_EQ(dropouts(Mode::training), 3);
  EXPECT_EQ(dropouts(Mode::inference), 0);
}

TEST_F(LstmClassifier, RefusesSamplesOfAnotherRank) {
  try {
    make({2, {4, 5}, 10});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::shape);
    EXPECT_STREQ(
        error.what(),
        "[lstm_classifier] wants images (channels,height,width) of at least 1 x 1 pixels, got samples of shape "
        "(4,5); resize them, or choose another model");
  }
}

}  // namespace
}  // namespace weft::models
