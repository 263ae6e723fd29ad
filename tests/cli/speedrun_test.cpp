// Weights that start from the data, and test-time augmentation, as a user meets them.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;

class Speedrun : public ProgramTest {
 protected:
  /// Three epochs of 10 steps of a narrow network on images of 12x12 pixels.
  Outcome train(const std::string& run, const std::vector<std::string>& more = {}) {
    write_idx("train", 320, 12);
    write_idx("test", 72, 12);
    std::vector<std::string> arguments = {"train", "--model", "airbench94", "--data",       data(), "--run",
                                          run,     "--batch", "32",         "--epochs",     "3",    "--threads",
                                          "1",     "--quiet", "--set",      "model.width=4"};
    for (const char* setting :
         {"optimizer.groups.whitening.match=whiten.weight", "optimizer.groups.whitening.learning_rate_factor=0",
          "optimizer.groups.early.match=whiten.bias", "optimizer.groups.early.epochs=1", "lookahead.steps=5",
          "lookahead.alpha=1", "lookahead.end_alpha=0.3", "checkpoint.keep=9"})
      arguments.insert(arguments.end(), {"--set", setting});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return weft(arguments);
  }
  std::vector<float> tensor(const std::string& file, const std::string& name) {
    const SafetensorsFile content = read_safetensors(path(file));
    const Tensor& found = content.tensors.at(name);
    return {found.data_as<float>(), found.data_as<float>() + found.elements()};
  }
};

constexpr const char* kEnd = "/checkpoints/step-00000030/model.safetensors";

TEST_F(Speedrun, FrozenFiltersAreThoseOfTheDataFromTheFirstStepOn) {
  ASSERT_EQ(train("r").code, 0);
  const std::vector<float> begin = tensor("r/checkpoints/step-00000010/model.safetensors", "whiten.weight"),
                           end = tensor(std::string("r") + kEnd, "whiten.weight");
  EXPECT_EQ(begin, end);
  ASSERT_EQ(end.size(), 32u);
  double first = 0, last = 0;
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(end[16 + i], -end[i]);
    if (i < 4) first += static_cast<double>(end[i] * end[i]);
    if (i >= 12) last += static_cast<double>(end[i] * end[i]);
  }
  // Neighbouring pixels are alike: the first filter is a mean, and differences are enlarged.
  for (size_t i = 1; i < 4; ++i) EXPECT_NEAR(end[i], end[0], 0.05);
  EXPECT_GT(last, 2 * first);
}

TEST_F(Speedrun, ContinuesBitwise) {
  ASSERT_EQ(train("r").code, 0);
  const std::string whole = read_all(path(std::string("r") + kEnd));
  for (const char* later : {"r/checkpoints/step-00000020", "r/checkpoints/step-00000030"}) fs::remove_all(path(later));
  fs::remove(path("r/checkpoints/best"));
  fs::remove(path("r/summary.json"));
  const Outcome resumed = weft({"train", "--resume", "r", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(read_all(path(std::string("r") + kEnd)), whole);
}

TEST_F(Speedrun, EvalTakesViewsAsTrainedOrAsAsked) {
  ASSERT_EQ(train("r", {"--set", "evaluation.tta=multicrop"}).code, 0);
  const json trained = json::parse(read_all(path("r/summary.json")));
  const auto measured = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"eval", "r", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = weft(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  };
  const json as_trained = measured({}), plain = measured({"--tta", "none"}), flipped = measured({"--tta", "flip"});
  EXPECT_EQ(as_trained["tta"], "multicrop");
  EXPECT_EQ(as_trained["loss"], trained["test_loss"]);
  EXPECT_EQ(as_trained["accuracy"], trained["test_accuracy"]);
  EXPECT_EQ(flipped["tta"], "flip");
  EXPECT_NE(plain["loss"], as_trained["loss"]);
  EXPECT_NE(plain["loss"], flipped["loss"]);
  const Outcome in_words = weft({"eval", "r", "--tta", "flip"});
  EXPECT_NE(in_words.out.find(", mean of 2 views: accuracy"), std::string::npos) << in_words.out;
}

/// The loss of what --logits writes is the loss that eval states.
TEST_F(Speedrun, LogitsAreThoseOfAllViews) {
  ASSERT_EQ(train("r").code, 0);
  const json result = json::parse(weft({"eval", "r", "--json", "--tta", "multicrop", "--logits", "l"}).out);
  const std::vector<float> logits = tensor("l", "logits");
  const std::string labels = read_all(path("test-labels")).substr(8);
  ASSERT_EQ(logits.size(), 4 * labels.size());
  double loss = 0;
  for (size_t sample = 0; sample < labels.size(); ++sample) {
    double sum = 0;
    for (size_t c = 0; c < 4; ++c) sum += std::exp(static_cast<double>(logits[4 * sample + c]));
    loss += std::log(sum) - static_cast<double>(logits[4 * sample + static_cast<size_t>(labels[sample])]);
  }
  EXPECT_NEAR(loss / static_cast<double>(labels.size()), result["loss"].get<double>(), 1e-5);
}

TEST_F(Speedrun, ViewsWantImagesInClasses) {
  write_all(path("t.csv"), "a,b,kind\n1,2,x\n2,1,y\n1,3,x\n4,1,y\n1,2,x\n2,1,y\n1,3,x\n4,1,y\n1,2,x\n2,1,y\n");
  const std::vector<std::string> arguments = {"train", "--model",   "mlp",     "--data", "csv:t.csv",
                                              "--run", "r",         "--batch", "2",      "--epochs",
                                              "1",     "--threads", "1",       "--quiet"};
  std::vector<std::string> with_views = arguments;
  with_views.insert(with_views.end(), {"--set", "evaluation.tta=flip"});
  const std::string why = "test-time augmentation is for networks that say of images which class each shows";
  expect_error(weft(with_views), 2, why);
  EXPECT_FALSE(fs::exists(path("r")));
  ASSERT_EQ(weft(arguments).code, 0);
  expect_error(weft({"eval", "r", "--tta", "multicrop"}), 2, why);
}

TEST_F(Speedrun, WhiteningWantsImages) {
  write_all(path("t.csv"), "a,b,kind\n1,2,x\n2,1,y\n1,3,x\n4,1,y\n1,2,x\n2,1,y\n1,3,x\n4,1,y\n1,2,x\n2,1,y\n");
  expect_error(weft({"train", "--model", "airbench94", "--data", "csv:t.csv", "--run", "r", "--batch", "2"}), 1,
               "[airbench94] wants images (channels,height,width) of at least 9 x 9 pixels");
}

}  // namespace
}  // namespace weft::cli_tests
