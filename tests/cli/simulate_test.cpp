// weft simulate: models, transformers, failures and traces on clusters of files, and what users get wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

using SimulateCommand = ProgramTest;

TEST_F(SimulateCommand, SaysWhatAStepOfThousandsTakes) {
  const Outcome outcome = weft({"simulate", "resnet18", "--cluster", "v100x8_100g", "--ranks", "2048", "--batch",
                                "65536", "--precision", "f16", "--steps", "1000", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report["hosts"], 256);
  EXPECT_GT(report["step_seconds"], 0.001);
  EXPECT_LT(report["step_seconds"], 0.1);
  EXPECT_GT(report["of_linear"], 0.7);
  EXPECT_GT(report["run_kwh"], 0);
}

TEST_F(SimulateCommand, WritesATraceThatIsJson) {
  const Outcome outcome =
      weft({"simulate", "lenet5", "--cluster", "p3_16xlarge", "--ranks", "16", "--trace", "trace.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(nlohmann::json::parse(read_all(path("trace.json")))["traceEvents"].empty());
}

TEST_F(SimulateCommand, DrawsTheTimelineOfAPipeline) {
  const Outcome outcome = weft(
      {"simulate", "transformer", "--shape", "layers=8,hidden=512,heads=8,sequence=128,vocabulary=1000", "--cluster",
       "dgx_a100_80gb", "--ranks", "4", "--batch", "8", "--strategy", "pipeline=4", "--svg", "timeline.svg"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string svg = read_all(path("timeline.svg"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (const char* text : {">stage 3: compute<", "<title>forward 7</title>", ">backward<", ">update<"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  EXPECT_EQ(svg.find("messages 2"), std::string::npos);
}

TEST_F(SimulateCommand, ComparesPoliciesOnTheSameFailures) {
  const Outcome outcome =
      weft({"simulate", "transformer", "--shape", "layers=24,hidden=2304,heads=24,sequence=2048,vocabulary=51200",
            "--cluster", "dgx_a100_80gb", "--ranks", "512", "--batch", "512", "--device-hours", "100000", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto policies = nlohmann::json::parse(outcome.out)["campaign"]["policies"];
  ASSERT_EQ(policies.size(), 6u);
  EXPECT_LT(policies[0]["goodput"], policies[5]["goodput"]);
}

TEST_F(SimulateCommand, NamesWhatIsWrongAndTheNextStep) {
  const auto error = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "simulate");
    const Outcome outcome = weft(words);
    EXPECT_NE(outcome.code, 0);
    return outcome.err;
  };
  EXPECT_NE(error({"resnet18", "--cluster", "p3_16xlarg"}).find("did you mean 'p3_16xlarge'?"), std::string::npos);
  EXPECT_NE(error({"resnet18", "--cluster", "lambda_8xv100", "--ranks", "64"}).find("write more hosts into its file"),
            std::string::npos);
  EXPECT_NE(error({"resnet18", "--cluster", "p3_16xlarge", "--ranks", "16", "--batch", "100"})
                .find("does not divide among 16 ranks; choose --batch 112"),
            std::string::npos);
  EXPECT_NE(
      error({"resnet18", "--cluster", "p3_16xlarge", "--strategy", "tensor=2"}).find("are for the model 'transformer'"),
      std::string::npos);
}

TEST_F(SimulateCommand, TooLittleMemoryIsAFailureThatNamesTheLeast) {
  const Outcome outcome = weft({"simulate", "resnet18", "--cluster", "m40_10g", "--ranks", "1", "--batch", "1024"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("'resnet18' does not fit: a rank needs "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("the least is "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("`weft plan resnet18 --cluster m40_10g --ranks 1 --batch 1024 --memory-limit 12.0GB`"),
            std::string::npos)
      << outcome.err;
}

TEST_F(SimulateCommand, WeeksWantARateOfFailures) {
  write_all(path("calm.toml"),
            "[machine]\ndevice = \"v100_sxm2_16gb\"\nhosts = 2\n[between_hosts]\nlatency_us = 10\n"
            "megabytes_per_second = 10000\n");
  expect_error(weft({"simulate", "lenet5", "--cluster", "calm.toml", "--weeks", "4"}), 2,
               "--weeks: failures.per_device_hour is missing in 'calm.toml'");
}

TEST_F(SimulateCommand, SharesByRateWhateverTheModelExchanges) {
  write_all(
      path("four.toml"),
      "[machine]\ndevice = \"xeon_8480_1s\"\nhosts = 4\nspeeds = [1, 1, 1, 0.5]\n[between_hosts]\nlatency_us = 20\n"
      "megabytes_per_second = 1200\n");
  // Models whose large layers may gather rows in place of gradients, depending on how many there are.
  for (const char* model : {"alexnet", "resnet18", "transformer_lm"}) {
    const auto seconds = [&](std::vector<std::string> more) {
      std::vector<std::string> words = {"simulate", model, "--cluster", "four.toml", "--batch", "128", "--json"};
      words.insert(words.end(), more.begin(), more.end());
      const Outcome outcome = weft(words);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      return outcome.code == 0 ? nlohmann::json::parse(outcome.out)["step_seconds"].get<double>() : 0.0;
    };
    EXPECT_LT(seconds({"--unequal-shares"}), seconds({})) << model;
  }
}

TEST_F(SimulateCommand, NeedsASampleForEachRank) {
  expect_error(weft({"simulate", "lenet5", "--cluster", "p3_16xlarge", "--ranks", "16", "--batch", "7"}), 2,
               "a batch of 7 leaves some of 16 ranks without a sample; choose --batch 16 or more");
}

TEST_F(SimulateCommand, RefusesOptionsThatATransformerDoesNotHave) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"--precision", "f16"}, "write arithmetic=f16 into --strategy"},
      {{"--exchange", "f32"}, "write gradient-bytes=2 into --strategy"},
      {{"--set", "batch=4"}, "write its sizes into --shape"},
      {{"--tf32"}, "write arithmetic=tf32 into --strategy"},
      {{"--input", "nonsense"}, "write sequence=1024 into --shape"},
      {{"--classes", "10"}, "write vocabulary=51200 into --shape"},
      {{"--bucket", "25MB"}, "leave it away"},
      {{"--without", "nonsense"}, "leave it away"},
      {{"--reduce-all"}, "leave it away"},
      {{"--unequal-shares"}, "leave it away"}};
  for (const auto& [option, next_step] : refused) {
    std::vector<std::string> words = {"simulate", "transformer", "--cluster", "dgx_a100_80gb", "--ranks", "1"};
    words.insert(words.end(), option.begin(), option.end());
    expect_error(weft(words), 2, option.front() + " is not for the model 'transformer'; " + next_step);
  }
}

TEST_F(SimulateCommand, ATransformersUsualBatchIsAsOfOtherModels) {
  const Outcome outcome = weft({"simulate", "transformer", "--cluster", "dgx_a100_80gb", "--ranks", "2", "--json"});
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["batch"], 64) << outcome.err;
}

TEST_F(SimulateCommand, AStepOfSeveralBatchesIsNoShorterThanItsComputation) {
  const Outcome outcome =
      weft({"simulate", "lenet5", "--cluster", "p3_16xlarge", "--ranks", "8", "--set", "accumulate=4", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_LE(report["busy_seconds"], report["step_seconds"]);
  EXPECT_LE(report["of_linear"], 1);
}

TEST_F(SimulateCommand, ReportsWhatStagesOnSeveralHostsSend) {
  const Outcome outcome = weft(
      {"simulate", "transformer", "--shape", "layers=8,hidden=512,heads=8,sequence=128,vocabulary=1000,tied=no",
       "--cluster", "dgx_a100_80gb", "--ranks", "16", "--batch", "4", "--strategy", "tensor=8,pipeline=2", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["bytes_sent_per_host"], 4 * 128 * 512 * 2);
}

TEST_F(SimulateCommand, RefusesStrategiesThatItWouldNotSimulate) {
  for (const char* key : {"mesh.tensor=4", "mesh.pipeline=2", "averaging.period=8", "strategy=auto", "virtual_ranks=8",
                          "memory_limit=1GB"})
    expect_error(
        weft({"simulate", "lenet5", "--cluster", "p3_16xlarge", "--ranks", "8", "--set", key}), 2,
        std::string(key) +
            " is not simulated: the step would look like one without it; `weft plan lenet5 --cluster p3_16xlarge "
            "--ranks 8 --set " +
            key + "` says what it takes");
}

}  // namespace
}  // namespace weft::cli_tests
