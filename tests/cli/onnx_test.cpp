// weft export, import and infer of ONNX files, as a user types them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "weft/tensor/npy.h"

namespace weft::cli_tests {
namespace {

using testing::HasSubstr;

class OnnxCommands : public ProgramTest {
 protected:
  void write_images(const std::string& name, int64_t batch) const {
    Tensor images(DType::f32, Shape{batch, 1, 28, 28});
    for (int64_t index = 0; index < images.elements(); ++index)
      images.data_as<float>()[index] = static_cast<float>(index % 7) / 7;
    write_npy(path(name), images);
  }
};

TEST_F(OnnxCommands, AModelIsWrittenShownAndRun) {
  ASSERT_EQ(weft({"export", "lenet5", path("net.onnx")}).code, 0);
  const Outcome shown = weft({"import", path("net.onnx"), "--json"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto json = nlohmann::json::parse(shown.out);
  EXPECT_EQ(json["inputs"][0]["type"], "f32[batch,1,28,28]");
  EXPECT_EQ(json["outputs"][0]["name"], "logits");
  EXPECT_EQ(json["parameters"], 61706);
  EXPECT_EQ(json["multiply_adds"], 416520);
  EXPECT_EQ(json["graphs"], 1);
  write_images("images.npy", 3);
  const Outcome inferred =
      weft({"infer", path("net.onnx"), "--input", path("images.npy"), "--output-dir", path("out")});
  ASSERT_EQ(inferred.code, 0) << inferred.err;
  EXPECT_THAT(inferred.out, HasSubstr("logits"));
  EXPECT_EQ(read_npy(path("out/logits.npy")).shape(), (Shape{3, 10}));
}

TEST_F(OnnxCommands, TheWorkOfAFileIsThatOfItsModelWhateverPassesFuse) {
  ASSERT_EQ(weft({"export", "resnet20", path("net.onnx")}).code, 0);
  const auto shown = nlohmann::json::parse(weft({"import", path("net.onnx"), "--json"}).out);
  int64_t of_model = 0;
  for (const auto& model : nlohmann::json::parse(weft({"models", "--json"}).out))
    if (model["name"] == "resnet20") of_model = model["multiply_adds"];
  EXPECT_GT(of_model, 0);
  EXPECT_EQ(shown["multiply_adds"], of_model);
}

TEST_F(OnnxCommands, AFileThatIsThereIsKept) {
  write_all(path("net.onnx"), "mine");
  const Outcome outcome = weft({"export", "lenet5", path("net.onnx")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("is there already"));
  EXPECT_EQ(read_all(path("net.onnx")), "mine");
}

TEST_F(OnnxCommands, AnInputOfTheWrongShapeIsNamed) {
  ASSERT_EQ(weft({"export", "lenet5", path("net.onnx")}).code, 0);
  write_npy(path("rows.npy"), Tensor(DType::f32, Shape{3, 784}));
  const Outcome outcome = weft({"infer", path("net.onnx"), "--input", path("rows.npy")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the input 'image' is f32[3,784], but the model wants f32[batch,1,28,28]"));
}

TEST_F(OnnxCommands, WhatIsNoModelAndNoArrayIsSaid) {
  write_all(path("net.onnx"), "hello");
  EXPECT_THAT(weft({"import", path("net.onnx")}).err, HasSubstr("is no ONNX model, or is damaged"));
  ASSERT_EQ(weft({"export", "lenet5", path("net.onnx"), "--force"}).code, 0);
  write_all(path("images.npy"), "hello");
  EXPECT_THAT(weft({"infer", path("net.onnx"), "--input", path("images.npy")}).err, HasSubstr("is no file of NumPy"));
}

TEST_F(OnnxCommands, AnImportedModelIsTrainedAndGoesOnWithoutItsFileAndElsewhere) {
  ASSERT_EQ(weft({"export", "lenet5", path("net.onnx")}).code, 0);
  const Outcome trained = weft({"train", "--model", "onnx:" + path("net.onnx").string(), "--data", "fashion-mnist",
                                "--epochs", "1", "--batch", "512", "--run", path("run")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  fs::remove(path("net.onnx"));
  fs::rename(path("run"), path("moved"));
  EXPECT_TRUE(fs::exists(path("moved/model.onnx")));
  const Outcome resumed = weft({"train", "--resume", path("moved"), "--epochs", "2"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(weft({"eval", path("moved")}).code, 0);
  EXPECT_EQ(weft({"export", path("moved"), path("again.onnx")}).code, 0);
}

TEST_F(OnnxCommands, DataThatAnImportedModelDoesNotReadAreSaid) {
  ASSERT_EQ(weft({"export", "airbench94", path("net.onnx")}).code, 0);
  const Outcome outcome = weft({"train", "--model", "onnx:" + path("net.onnx").string(), "--data", "fashion-mnist",
                                "--epochs", "1", "--run", path("run")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("reads f32[batch,3,32,32], the data give (128,1,28,28)"));
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(OnnxCommands, FlagsThatWouldChangeNothingAreRefused) {
  ASSERT_EQ(weft({"export", "lenet5", path("net.onnx")}).code, 0);
  write_images("images.npy", 1);
  const std::vector<std::string> words{"infer", path("net.onnx"), "--input", path("images.npy")};
  const auto error_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = weft(all);
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_THAT(error_with({"--top", "3"}), HasSubstr("it names classes of pictures, and none is given"));
  EXPECT_THAT(error_with({"--top", "3", "--json"}), HasSubstr("it names classes of pictures, and none is given"));
  EXPECT_THAT(error_with({"--no-pin"}), HasSubstr("--no-pin: an ONNX file"));
  EXPECT_THAT(error_with({"--input", "image=" + path("images.npy").string()}),
              HasSubstr("there is a file for 'image' already"));
  EXPECT_THAT(error_with({"--json", "--input", path("images.npy")}), HasSubstr("there is a file for 'image' already"));
}

TEST_F(OnnxCommands, OperatorsAreListed) {
  EXPECT_THAT(weft({"import", "--operators"}).out, HasSubstr("| pooling | AveragePool, "));
}

}  // namespace
}  // namespace weft::cli_tests
