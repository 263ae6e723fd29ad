// Weights that leave runs and come back: weft export, weft train --init.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli_tests {
namespace {

class Weights : public ProgramTest {
 protected:
  /// So small a rate that the weights stay as they start.
  static std::vector<std::string> still_run(const std::string& run, std::vector<std::string> more) {
    more.insert(more.end(), {"--epochs", "1", "--set", "optimizer.learning_rate=1e-30"});
    return tiny_run(run, more);
  }
  std::map<std::string, Tensor> exported(const std::string& run, const std::string& file) {
    EXPECT_EQ(weft({"export", run, file}).code, 0);
    return read_safetensors(path(file)).tensors;
  }
  /// As another program writes them.
  void exported_without_metadata(const std::string& run, const std::string& file) {
    exported(run, file);
    SafetensorsFile weights = read_safetensors(path(file));
    weights.metadata.clear();
    write_safetensors(path(file), weights);
  }
  static bool same(const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() &&
           std::equal(a.data_as<float>(), a.data_as<float>() + a.elements(), b.data_as<float>());
  }
};

TEST_F(Weights, GoFromOneRunToTheNext) {
  ASSERT_EQ(weft(tiny_run("first")).code, 0);
  const auto first = exported("first", "first.safetensors");
  ASSERT_EQ(weft(still_run("second", {"--init", "first.safetensors", "--seed", "7"})).code, 0);
  const auto second = exported("second", "second.safetensors");
  ASSERT_EQ(first.size(), 6u);
  for (const auto& [name, tensor] : first) EXPECT_TRUE(same(tensor, second.at(name))) << name;
}

TEST_F(Weights, ForOtherClassesKeepAllButTheLastLayer) {
  ASSERT_EQ(weft(tiny_run("four")).code, 0);
  const auto four = exported("four", "four.safetensors");
  write_idx("three", 96, 8, 3);
  const Outcome outcome = weft({"train", "--model", "mlp", "--data", "idx:three-images,three-labels", "--init",
                                "four.safetensors", "--run", "three", "--epochs", "1", "--batch", "32", "--threads",
                                "1", "--quiet", "--set", "optimizer.learning_rate=1e-30"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("is for another number of classes: fc3.weight and fc3.bias stay as they start\n"),
            std::string::npos)
      << outcome.err;
  const auto three = exported("three", "three.safetensors");
  EXPECT_TRUE(same(four.at("fc2.weight"), three.at("fc2.weight")));
  EXPECT_EQ(three.at("fc3.weight").shape(), Shape({3, 256}));
}

TEST_F(Weights, StandInTheSpecByAnAbsolutePath) {
  ASSERT_EQ(weft(tiny_run("a")).code, 0);
  exported("a", "a.safetensors");
  ASSERT_EQ(weft(still_run("b", {"--init", "a.safetensors"})).code, 0);
  EXPECT_NE(read_all(path("b/spec.toml")).find("init = \"" + path("a.safetensors").string() + "\""), std::string::npos)
      << read_all(path("b/spec.toml"));
}

TEST_F(Weights, OfAnotherModelLeaveNothingBehind) {
  ASSERT_EQ(weft(tiny_run("a", {"--set", "model.hidden=32,16"})).code, 0);
  exported_without_metadata("a", "a.safetensors");
  expect_error(weft(tiny_run("b", {"--init", "a.safetensors"})), 1,
               "'fc1.weight' is (32,64), the model wants (512,64); was it saved from another model?");
  EXPECT_FALSE(fs::exists(path("b")));
}

TEST_F(Weights, OfALargerModelAreRefused) {
  ASSERT_EQ(weft(tiny_run("a", {"--set", "model.hidden=32,16"})).code, 0);
  exported_without_metadata("a", "a.safetensors");
  expect_error(weft(tiny_run("b", {"--init", "a.safetensors", "--set", "model.hidden=32"})), 1,
               "a.safetensors' holds 2 tensors that the model has not, the first is 'fc3.bias'");
}

TEST_F(Weights, ThatAreNotThere) {
  expect_error(weft(tiny_run("a", {"--init", "none.safetensors"})), 1, "none.safetensors");
  EXPECT_FALSE(fs::exists(path("a")));
}

TEST_F(Weights, AreEvaluatedWithoutARun) {
  ASSERT_EQ(weft(tiny_run("a")).code, 0);
  exported("a", "a.safetensors");
  const Outcome of_run = weft({"eval", "a", "--logits", "a.logits"});
  const Outcome of_file = weft({"eval", "--weights", "a.safetensors", "--model", "mlp", "--data", data(), "--batch",
                                "32", "--logits", "b.logits"});
  ASSERT_EQ(of_file.code, 0) << of_file.err;
  const auto measured = [](const std::string& line) { return line.substr(line.find("accuracy"), 31); };
  EXPECT_EQ(measured(of_file.out), measured(of_run.out));
  const Tensor logits = read_safetensors(path("b.logits")).tensors.at("logits");
  EXPECT_EQ(logits.shape(), Shape({72, 4}));
  EXPECT_TRUE(same(logits, read_safetensors(path("a.logits")).tensors.at("logits")));
}

TEST_F(Weights, ReplaceThoseOfARun) {
  ASSERT_EQ(weft(tiny_run("a")).code, 0);
  ASSERT_EQ(weft(still_run("b", {"--seed", "9"})).code, 0);
  exported("a", "a.safetensors");
  ASSERT_EQ(weft({"eval", "a", "--logits", "a.logits"}).code, 0);
  ASSERT_EQ(weft({"eval", "b", "--weights", "a.safetensors", "--logits", "b.logits"}).code, 0);
  EXPECT_TRUE(same(read_safetensors(path("a.logits")).tensors.at("logits"),
                   read_safetensors(path("b.logits")).tensors.at("logits")));
}

TEST_F(Weights, WithoutARunWantModelAndData) {
  expect_error(weft({"eval"}), 2, "give a run directory, or --weights FILE with --model and --data");
  expect_error(weft({"eval", "--weights", "a.safetensors", "--model", "mlp"}), 2, "wants --model and --data");
}

TEST_F(Weights, OfOtherClassesCannotBeEvaluated) {
  ASSERT_EQ(weft(tiny_run("a")).code, 0);
  exported_without_metadata("a", "a.safetensors");
  write_idx("three", 96, 8, 3);
  expect_error(
      weft({"eval", "--weights", "a.safetensors", "--model", "mlp", "--data", "idx:three-images,three-labels"}), 1,
      "'fc3.weight' is (4,256), the model wants (3,256)");
}

TEST_F(Weights, StatisticsOfTheWrongNumberOfChannels) {
  ASSERT_EQ(weft(tiny_run("a")).code, 0);
  expect_error(weft({"eval", "a", "--mean", "0.5,0.5,0.5"}), 2,
               "--mean '0.5,0.5,0.5': wants 1 numbers, one per channel");
  expect_error(weft({"eval", "a", "--deviation", "0"}), 2, "--deviation '0': wants 1 numbers above 0");
}

TEST_F(Weights, OfAnAutoencoderGiveTheInputBack) {
  const Outcome outcome =
      weft({"train", "--model", "autoencoder", "--data", data(), "--run", "a", "--epochs", "6", "--batch", "32",
            "--threads", "1", "--quiet", "--set", "optimizer.name=adamw", "--set", "optimizer.learning_rate=0.003"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json summary = nlohmann::json::parse(read_all(path("a/summary.json")));
  EXPECT_LT(summary["test_loss"], 0.7) << "the mean of normalised images explains nothing: 1";
  EXPECT_TRUE(summary["test_accuracy"].is_null());
  const Outcome evaluated = weft({"eval", "a", "--logits", "a.logits"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(evaluated.out.find("accuracy"), std::string::npos) << evaluated.out;
  EXPECT_EQ(read_safetensors(path("a.logits")).tensors.at("logits").shape(), Shape({72, 64}));
  write_all(path("p.pgm"), "P5 8 8 255\n" + std::string(64, '\7'));
  const Outcome predicted = weft({"predict", "a", "p.pgm"});
  EXPECT_NE(predicted.code, 0);
  EXPECT_NE(predicted.err.find("[autoencoder] gives back its input and predicts no classes"), std::string::npos)
      << predicted.err;
}

TEST_F(Weights, AreWrittenUnderTheNameOfTheirFormatOnly) {
  ASSERT_EQ(weft(tiny_run("a")).code, 0);
  expect_error(
      weft({"export", "a", "model.pt"}), 2,
      "'model.pt': weft export writes safetensors and ONNX files; name it 'model.safetensors' or 'model.onnx'");
}

TEST_F(Weights, BringWhatAProgramNeedsBesideThem) {
  ASSERT_EQ(weft(tiny_run("a")).code, 0);
  ASSERT_EQ(weft({"export", "a", "a.safetensors"}).code, 0);
  const auto metadata = read_safetensors(path("a.safetensors")).metadata;
  EXPECT_EQ(metadata.at("model"), "mlp");
  EXPECT_EQ(metadata.at("input"), "1,8,8");
  EXPECT_EQ(metadata.at("classes"), "4");
  EXPECT_GT(std::stod(metadata.at("mean")), 0);
  EXPECT_GT(std::stod(metadata.at("deviation")), 0);
}

TEST_F(Weights, ThatAreNoNumbersAreNamed) {
  ASSERT_EQ(weft(tiny_run("a")).code, 0);
  ASSERT_EQ(weft({"export", "a", "a.safetensors"}).code, 0);
  SafetensorsFile file = read_safetensors(path("a.safetensors"));
  auto& [name, tensor] = *file.tensors.begin();
  tensor.data_as<float>()[1] = std::nanf("");
  write_safetensors(path("bad.safetensors"), file);
  const std::string message = "the tensor '" + name + "' holds nan at element 1";
  expect_error(weft({"eval", "--weights", "bad.safetensors", "--model", "mlp", "--data", data()}), 1, message);
  const Outcome outcome = weft(tiny_run("b", {"--init", "bad.safetensors"}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("b")));
}

TEST_F(Weights, AreNotWrittenOverAFile) {
  ASSERT_EQ(weft(tiny_run("a")).code, 0);
  write_all(path("precious.safetensors"), "data");
  expect_error(weft({"export", "a", "precious.safetensors"}), 2,
               "'precious.safetensors' is there already; give another name, or --force");
  EXPECT_EQ(read_all(path("precious.safetensors")), "data");
  EXPECT_EQ(weft({"export", "a", "precious.safetensors", "--force"}).code, 0);
  EXPECT_EQ(read_safetensors(path("precious.safetensors")).metadata.at("model"), "mlp");
}

}  // namespace
}  // namespace weft::cli_tests
