// weft compile, and weft infer of what it writes, as a user types them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "weft/data/pictures/image.h"
#include "weft/engine/model_file.h"
#include "weft/tensor/npy.h"

namespace weft::cli_tests {
namespace {

using testing::HasSubstr;

class CompileCommand : public ProgramTest {
 protected:
  void write_images(const std::string& name, int64_t batch) const {
    Tensor images(DType::f32, Shape{batch, 1, 28, 28});
    for (int64_t index = 0; index < images.elements(); ++index)
      images.data_as<float>()[index] = static_cast<float>(index % 11) / 7;
    write_npy(path(name), images);
  }
  void write_picture(const std::string& name, uint8_t grey) const {
    data::write_png(path(name), {1, 28, 28, std::vector<uint8_t>(784, grey)});
  }
};

TEST_F(CompileCommand, AModelRunsInAnyBatchOnAnyStreamsAlike) {
  const Outcome compiled = weft({"compile", "lenet5", path("net.weft")});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("'lenet5' for any batch"));
  write_images("images.npy", 5);
  const auto outputs = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"infer",        path("net.weft"), "--input", path("images.npy"),
                                   "--output-dir", path("out")};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = weft(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_npy(path("out/probabilities.npy"));
  };
  const Tensor all = outputs({"--threads", "1"}), cut = outputs({"--streams", "2", "--batch", "2", "--threads", "1"});
  ASSERT_EQ(all.shape(), (Shape{5, 10}));
  ASSERT_EQ(cut.shape(), all.shape());
  for (int64_t at = 0; at < all.elements(); ++at) EXPECT_NEAR(cut.data_as<float>()[at], all.data_as<float>()[at], 1e-6);
}

TEST_F(CompileCommand, ARunKeepsItsClassesAndItsPreparationOfPictures) {
  ASSERT_EQ(weft({"train", "--model", "lenet5", "--data", "fashion-mnist", "--max-steps", "20", "--batch", "64",
                  "--run", path("run")})
                .code,
            0);
  ASSERT_EQ(weft({"compile", path("run"), path("net.weft"), "--licence", "CC0"}).code, 0);
  write_picture("grey.png", 90);
  const Outcome inferred = weft({"infer", path("net.weft"), "--input", path("grey.png"), "--top", "10", "--json"});
  ASSERT_EQ(inferred.code, 0) << inferred.err;
  const Outcome predicted = weft({"predict", path("run"), path("grey.png"), "--top", "10", "--json"});
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  const auto classes = nlohmann::json::parse(inferred.out)["pictures"][0]["classes"];
  const auto expected = nlohmann::json::parse(predicted.out)[0]["classes"];
  ASSERT_EQ(classes.size(), expected.size());
  for (size_t at = 0; at < classes.size(); ++at) {
    EXPECT_EQ(classes[at]["name"], expected[at]["name"]);
    EXPECT_NEAR(classes[at]["value"].get<double>(), expected[at]["probability"].get<double>(), 1e-5);
  }
  const Outcome of_run = weft({"infer", path("run"), "--input", path("grey.png"), "--top", "10", "--json"});
  EXPECT_EQ(nlohmann::json::parse(of_run.out)["pictures"], nlohmann::json::parse(inferred.out)["pictures"]);
}

TEST_F(CompileCommand, ARunOfPicturesIsPreparedAlikeByEveryWayToAFile) {
  for (const int at : {0, 1, 2, 3, 4, 5, 6, 7})
    for (const std::string kind : {"dark", "light"}) {
      fs::create_directories(path("pictures/" + kind));
      const auto grey = static_cast<uint8_t>(at + (kind == "dark" ? 20 : 200));
      data::write_png(path("pictures/" + kind) / (std::to_string(at) + ".png"),
                      {3, 12, 16, std::vector<uint8_t>(576, grey)});
    }
  for (const std::string decode : {"scaled", "exact"}) {
    const std::string data = "images:pictures?size=8&decode=" + decode;
    ASSERT_EQ(weft({"train", "--model", "mlp", "--data", data, "--run", "run-" + decode, "--batch", "8", "--threads",
                    "1", "--epochs", "1", "--quiet"})
                  .code,
              0);
    const auto pictures_of = [&](const std::vector<std::string>& words) {
      const Outcome outcome = weft(words);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      return engine::read_model(path("net.weft")).pictures;
    };
    const auto direct = pictures_of({"compile", "run-" + decode, "net.weft", "--force"});
    ASSERT_TRUE(direct);
    EXPECT_EQ(direct->resize, 10) << "256 for 224";
    EXPECT_EQ(direct->decodes_exactly, decode == "exact");
    ASSERT_EQ(weft({"export", "run-" + decode, "net.onnx", "--force"}).code, 0);
    EXPECT_EQ(pictures_of({"compile", "net.onnx", "net.weft", "--force"}), direct);
    EXPECT_EQ(pictures_of({"quantize", "run-" + decode, "-o", "net.weft", "--threads", "1", "--force"}), direct);
  }
}

TEST_F(CompileCommand, RepeatsAreMeasured) {
  ASSERT_EQ(weft({"compile", "lenet5", path("net.weft"), "--batch", "1,4"}).code, 0);
  write_images("images.npy", 4);
  const Outcome outcome = weft({"infer", path("net.weft"), "--input", path("images.npy"), "--streams", "2", "--batch",
                                "4", "--threads", "1", "--repeat", "3", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["repeat"], 3);
  EXPECT_EQ(json["streams"], 2);
  EXPECT_GT(json["median_seconds"].get<double>(), 0);
  EXPECT_GT(json["rows_per_second"].get<double>(), 0);
  EXPECT_GT(json["arena_bytes"].get<int64_t>(), 0);
}

TEST_F(CompileCommand, AProfileSaysWhatNodesTake) {
  ASSERT_EQ(weft({"compile", "lenet5", path("net.weft"), "--batch", "1"}).code, 0);
  const std::vector<std::string> words{"infer", path("net.weft"), "--threads", "1", "--repeat", "3", "--profile"};
  const Outcome table = weft(words);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("by op and kernel:"));
  EXPECT_THAT(table.out, HasSubstr("conv2"));
  std::vector<std::string> with_json = words;
  with_json.push_back("--json");
  const auto json = nlohmann::json::parse(weft(with_json).out);
  double seconds = 0;
  for (const auto& node : json["nodes"]) seconds += node["seconds"].get<double>();
  EXPECT_GT(seconds, 0);
}

TEST_F(CompileCommand, AProfileWantsRuns) {
  ASSERT_EQ(weft({"compile", "lenet5", path("net.weft"), "--batch", "1"}).code, 0);
  const Outcome outcome = weft({"infer", path("net.weft"), "--profile"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--profile: it says what takes the time of several runs; add --repeat 100"));
}

TEST_F(CompileCommand, SaysSizesAsJson) {
  const Outcome outcome = weft({"compile", "lenet5", path("net.weft"), "--batch", "1,4", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report["batches"], nlohmann::json::parse("[1, 4]"));
  EXPECT_EQ(report["file_bytes"], std::filesystem::file_size(path("net.weft")));
  // Weights of 61,706 parameters but for the biases, which are few numbers in the graph's text, and less than the file.
  EXPECT_GT(report["constant_bytes"], 4 * 61000);
  EXPECT_LT(report["constant_bytes"], report["file_bytes"]);
}

TEST_F(CompileCommand, AFileThatIsThereIsKept) {
  write_all(path("net.weft"), "mine");
  const Outcome outcome = weft({"compile", "lenet5", path("net.weft")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("is there already"));
  EXPECT_EQ(read_all(path("net.weft")), "mine");
}

TEST_F(CompileCommand, ADamagedFileIsRefused) {
  ASSERT_EQ(weft({"compile", "lenet5", path("net.weft")}).code, 0);
  std::string content = read_all(path("net.weft"));
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  write_all(path("net.weft"), content);
  write_images("images.npy", 1);
  const Outcome outcome = weft({"infer", path("net.weft"), "--input", path("images.npy")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("is damaged"));
}

TEST_F(CompileCommand, PicturesForAModelThatDoesNotKnowThemAreRefused) {
  ASSERT_EQ(weft({"compile", "lenet5", path("net.weft")}).code, 0);
  write_picture("grey.png", 90);
  const Outcome outcome = weft({"infer", path("net.weft"), "--input", path("grey.png")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("compile it with --mean and --deviation"));
}

TEST_F(CompileCommand, FlagsOfOtherSourcesAreRefused) {
  const Outcome checkpoint = weft({"compile", "lenet5", path("net.weft"), "--checkpoint", "last"});
  EXPECT_EQ(checkpoint.code, 2);
  EXPECT_THAT(checkpoint.err, HasSubstr("--checkpoint is of a run, and 'lenet5' is none"));
  ASSERT_EQ(weft({"export", "lenet5", path("net.onnx")}).code, 0);
  const Outcome seed = weft({"compile", path("net.onnx"), path("net.weft"), "--seed", "4"});
  EXPECT_EQ(seed.code, 2);
  EXPECT_THAT(seed.err, HasSubstr("--seed draws the weights of a model of `weft models`"));
}

TEST_F(CompileCommand, AFileThatDoesMoreThanInferenceIsRefused) {
  engine::DeployedModel model;
  model.name = "updates";
  model.inputs = {{"x", "f32[1,4]"}, {"seed", "i64[]"}, {"step", "i64[]"}};
  model.outputs = {{"y", "f32[1,4]"}};
  model.graphs = {{1,
                   "graph \"g\" {\n  batch %x \"x\" : f32[1,4]\n  batch %s \"seed\" : i64[]\n  batch %t \"step\" : "
                   "i64[]\n  %y = dropout(%x, %s, %t) {probability=0.5} : f32[1,4]\n  output \"y\" %y\n}\n"}};
  engine::write_model(path("net.weft"), model);
  write_npy(path("x.npy"), Tensor(DType::f32, Shape{1, 4}));
  const Outcome outcome = weft({"infer", path("net.weft"), "--input", "x=" + path("x.npy").string()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("there is no op 'dropout'"));
}

TEST_F(CompileCommand, WhatIsNothingToCompileIsSaid) {
  const Outcome outcome = weft({"compile", "resnet17", path("net.weft")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("'resnet17' is no run directory, no ONNX file and no model"));
}

}  // namespace
}  // namespace weft::cli_tests
