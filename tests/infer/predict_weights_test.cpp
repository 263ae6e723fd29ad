// weft predict without a run: from a file of weights, with what the file says of itself and what the user adds.
#include <nlohmann/json.hpp>

#include "tests/cli/pictures.h"
#include "tests/cli/program.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli_tests {
namespace {

class PredictWeights : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_all(path("x.pgm"), pgm(8, 8, noise(1, 64)));
    write_all(path("y.pgm"), pgm(9, 7, noise(2, 63)));
  }
  /// Exports a trained run, with the metadata that are listed only where some are.
  void export_run(const std::vector<std::string>& more = {}, const std::vector<std::string>& kept = {"*"}) {
    const Outcome trained = weft(tiny_run("a", more));
    ASSERT_EQ(trained.code, 0) << trained.err;
    ASSERT_EQ(weft({"export", "a", "a.safetensors"}).code, 0);
    if (kept == std::vector<std::string>{"*"}) return;
    SafetensorsFile file = read_safetensors(path("a.safetensors"));
    std::erase_if(file.metadata,
                  [&](const auto& entry) { return std::find(kept.begin(), kept.end(), entry.first) == kept.end(); });
    write_safetensors(path("a.safetensors"), file);
  }
  /// Predictions as JSON.
  std::string predicted(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"predict"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.push_back("--json");
    const Outcome outcome = weft(all);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(PredictWeights, ExportedWeightsNeedNothingElse) {
  export_run();
  const std::string of_run = predicted({"a", "x.pgm", "y.pgm"});
  EXPECT_EQ(predicted({"--weights", "a.safetensors", "x.pgm", "y.pgm"}), of_run);
  EXPECT_EQ(predicted({"--weights", "a.safetensors", "--model", "mlp", "x.pgm", "y.pgm"}), of_run);
}

TEST_F(PredictWeights, TablesToo) {
  std::string table = "a,b,label\n";
  for (int row = 0; row < 64; ++row)
    table += std::to_string(row % 7) + "," + std::to_string(row % 5) + "," + (row % 7 > 3 ? "high\n" : "low\n");
  write_all(path("t.csv"), table);
  ASSERT_EQ(weft({"train", "--model", "mlp", "--data", "csv:t.csv?label=label", "--run", "a", "--batch", "16",
                  "--threads", "1", "--quiet", "--epochs", "2"})
                .code,
            0);
  ASSERT_EQ(weft({"export", "a", "a.safetensors"}).code, 0);
  EXPECT_EQ(predicted({"--weights", "a.safetensors", "t.csv"}), predicted({"a", "t.csv"}));
}

TEST_F(PredictWeights, OptionsOfTheModelComeFromTheFile) {
  export_run({"--set", "model.hidden=32,16"});
  EXPECT_EQ(predicted({"--weights", "a.safetensors", "x.pgm"}), predicted({"a", "x.pgm"}));
}

TEST_F(PredictWeights, AnOptionThatContradictsTheFileIsNamed) {
  export_run({"--set", "model.hidden=32,16"});
  const Outcome outcome = weft({"predict", "--weights", "a.safetensors", "--set", "model.hidden=32", "x.pgm"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("says model.hidden = 32,16; 32 was asked for, and counts"), std::string::npos)
      << outcome.err;
}

TEST_F(PredictWeights, AnotherModelThanTheFileNamesIsNamed) {
  export_run();
  const Outcome outcome = weft({"predict", "--weights", "a.safetensors", "--model", "lenet5", "x.pgm"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("says that its weights are of the model 'mlp'; 'lenet5' was asked for"), std::string::npos)
      << outcome.err;
}

TEST_F(PredictWeights, ForeignOnesAreDescribedByData) {
  export_run({}, {});
  const std::string of_run = predicted({"a", "x.pgm"});
  EXPECT_EQ(predicted({"--weights", "a.safetensors", "--model", "mlp", "--data", data(), "x.pgm"}), of_run);
}

TEST_F(PredictWeights, DataWithoutFilesArePredicted) {
  export_run({}, {});
  const std::string rows = predicted({"--weights", "a.safetensors", "--model", "mlp", "--data", data()});
  EXPECT_EQ(nlohmann::json::parse(rows).at(0).at("rows").size(), 72u) << rows;
}

TEST_F(PredictWeights, ForeignOnesAreDescribedByFlags) {
  export_run({}, {"mean", "deviation"});
  const SafetensorsFile file = read_safetensors(path("a.safetensors"));
  const std::string mean = file.metadata.at("mean"), deviation = file.metadata.at("deviation");
  const std::string of_run = predicted({"a", "x.pgm"});
  const std::string without_name =
      predicted({"--weights", "a.safetensors", "--model", "mlp", "--input", "1,8,8", "x.pgm"});
  const auto classes = [](const std::string& text) { return nlohmann::json::parse(text).at(0).at("classes").size(); };
  EXPECT_EQ(classes(without_name), 4u) << "as many as the last layer has rows";
  EXPECT_EQ(classes(of_run), 4u);
  EXPECT_EQ(predicted({"--weights", "a.safetensors", "--model", "mlp", "--input", "1,8,8", "--mean", mean,
                       "--deviation", deviation, "x.pgm"}),
            without_name);
  EXPECT_NE(predicted({"--weights", "a.safetensors", "--model", "mlp", "--input", "1,8,8", "--mean", "0.9", "x.pgm"}),
            without_name);
}

TEST_F(PredictWeights, ClassNamesComeFromTheFile) {
  export_run({}, {"mean", "deviation", "input"});
  SafetensorsFile file = read_safetensors(path("a.safetensors"));
  file.metadata["class_names"] = R"(["north","east","south","west"])";
  write_safetensors(path("a.safetensors"), file);
  const Outcome outcome = weft({"predict", "--weights", "a.safetensors", "--model", "mlp", "x.pgm"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"north", "east", "south", "west"})
    EXPECT_NE(outcome.out.find(name), std::string::npos) << outcome.out;
}

TEST_F(PredictWeights, WithoutMeanAndDeviationTheyAreAskedFor) {
  export_run({}, {});
  expect_error(weft({"predict", "--weights", "a.safetensors", "--model", "mlp", "--input", "1,8,8", "x.pgm"}), 2,
               "'a.safetensors' does not say by which mean and deviation its pixels were normalised; add --mean");
}

TEST_F(PredictWeights, WithoutAModelItIsAskedFor) {
  export_run({}, {});
  expect_error(weft({"predict", "--weights", "a.safetensors", "x.pgm"}), 2,
               "'a.safetensors' does not say which model it is of; add --model");
}

TEST_F(PredictWeights, MetadataThatCannotBeAreNamed) {
  export_run({}, {});
  SafetensorsFile file = read_safetensors(path("a.safetensors"));
  file.metadata["mean"] = "grey";
  write_safetensors(path("a.safetensors"), file);
  expect_error(weft({"predict", "--weights", "a.safetensors", "--model", "mlp", "x.pgm"}), 1,
               "'a.safetensors': its metadata say mean = 'grey', which is no list of numbers");
}

TEST_F(PredictWeights, AnInputIsOfWholeNumbers) {
  export_run({}, {"mean", "deviation"});
  for (const char* input : {"1.9,8.5,8.5", "1,8", "1,0,8"})
    expect_error(weft({"predict", "--weights", "a.safetensors", "--model", "mlp", "--input", input, "x.pgm"}), 2,
                 "--input '" + std::string(input) + "': wants 3 whole numbers above 0, such as 3,224,224");
}

TEST_F(PredictWeights, DamagedMetadataOfTheDataNameTheExport) {
  export_run();
  SafetensorsFile file = read_safetensors(path("a.safetensors"));
  const std::string whole = file.metadata["data"];
  for (const std::string& damaged : {std::string("{"), std::string("{}"), whole + "x"}) {
    file.metadata["data"] = damaged;
    write_safetensors(path("a.safetensors"), file);
    expect_error(weft({"predict", "--weights", "a.safetensors", "x.pgm"}), 1,
                 "'a.safetensors': its metadata 'data', which describe what it was trained on, are damaged; write the "
                 "file anew: `weft export RUN a.safetensors`");
  }
}

TEST_F(PredictWeights, NothingToPredict) {
  expect_error(weft({"predict", "--weights", "a.safetensors"}), 2, "nothing to predict: name files, or data by --data");
  expect_error(weft({"predict"}), 2, "nothing to predict with: give a run directory, or --weights FILE");
}

TEST_F(PredictWeights, TrainingKeepsTheirMeanAndDeviation) {
  export_run();
  const auto statistics = [&](const std::string& run) {
    const auto data = nlohmann::json::parse(read_all(path(run + "/data.json")));
    return std::pair(data.at("mean").dump(), data.at("deviation").dump());
  };
  write_idx("other", 96, 8, 2);  // of other brightness
  const std::vector<std::string> on_others = {
      "train", "--model",   "mlp", "--data", "idx:other-images,other-labels", "--epochs", "1", "--batch",
      "32",    "--threads", "1",   "--quiet"};
  const auto run = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments = on_others;
    arguments.insert(arguments.end(), {"--run", name});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = weft(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err;
  };
  run("own", {});
  EXPECT_NE(statistics("own"), statistics("a"));
  EXPECT_NE(run("kept", {"--init", "a.safetensors"}).find("pixels are normalised as for 'a.safetensors'"),
            std::string::npos);
  EXPECT_EQ(statistics("kept"), statistics("a"));
  run("given", {"--init", "a.safetensors", "--set", "augment.mean=0.5", "--set", "augment.deviation=0.25"});
  EXPECT_EQ(statistics("given"), std::pair(std::string("[0.5]"), std::string("[0.25]")));
}

TEST_F(PredictWeights, TrainingOnOtherChannelsHasMeanAndDeviationOfItsOwn) {
  export_run();
  for (const char* kind : {"dark", "light"}) {
    fs::create_directories(path("pictures") / kind);
    for (int at = 0; at < 10; ++at)
      write_all(path("pictures") / kind / (std::to_string(at) + ".pgm"),
                pgm(8, 8, noise(static_cast<uint32_t>(at + (kind[0] == 'd' ? 1 : 50)), 64)));
  }
  const Outcome outcome =
      weft({"train", "--model", "mlp", "--data", "images:pictures?size=8", "--init", "a.safetensors", "--init-partial",
            "--run", "b", "--epochs", "1", "--batch", "8", "--threads", "1", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(
      outcome.err.find("'a.safetensors' names mean and deviation of 1 channel; the images of 'pictures' have 3 and "
                       "are normalised by their own"),
      std::string::npos)
      << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(read_all(path("b/data.json"))).at("mean").size(), 3u);
}

TEST_F(PredictWeights, TrainingOnATableDoesWithoutMeanAndDeviation) {
  export_run();
  std::string table = "a,b,label\n";
  for (int row = 0; row < 64; ++row)
    table += std::to_string(row % 7) + "," + std::to_string(row % 5) + "," + (row % 7 > 3 ? "high\n" : "low\n");
  write_all(path("t.csv"), table);
  const Outcome outcome =
      weft({"train", "--model", "mlp", "--data", "csv:t.csv?label=label", "--init", "a.safetensors", "--init-partial",
            "--run", "b", "--batch", "16", "--threads", "1", "--quiet", "--epochs", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("'a.safetensors' names mean and deviation of pixels; "), std::string::npos) << outcome.err;
}

TEST_F(PredictWeights, MeansOfTheWrongNumberOfChannelsInTraining) {
  expect_error(weft(tiny_run("b", {"--set", "augment.mean=0.5,0.5,0.5", "--set", "augment.deviation=1,1,1"})), 2,
               "augment.mean holds 3 numbers, the images of 'idx' have 1 channel; give one for each");
  expect_error(weft(tiny_run("b", {"--set", "augment.mean=0.5"})), 2,
               "augment.deviation holds 0 numbers, the images of 'idx' have 1 channel");
}

}  // namespace
}  // namespace weft::cli_tests
