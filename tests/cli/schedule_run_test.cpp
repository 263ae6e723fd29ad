// Batches, images and momentum that change within a run, as a user asks for them.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

class ScheduleRun : public ProgramTest {
 protected:
  nlohmann::json json_of(const std::string& file) const { return nlohmann::json::parse(read_all(path(file))); }
  /// Values of a key in the step records.
  std::vector<double> recorded(const std::string& run, const std::string& key) const {
    std::vector<double> values;
    std::istringstream lines(read_all(path(run) / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      if (const auto record = nlohmann::json::parse(line); record["kind"] == "step") values.push_back(record.at(key));
    return values;
  }
};

/// 320 samples: 10 steps of 32, twice; 2 of 128; 40 of 8.
std::vector<std::string> growing_and_small() {
  return {"--epochs", "4", "--set", "batch_schedule.boundaries=[2,-1]", "--set", "batch_schedule.batches=[32,128,8]"};
}

TEST_F(ScheduleRun, OfBatchesIsWholeFromRecipeToSummary) {
  const Outcome outcome = weft(tiny_run("r", growing_and_small()));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("4 epochs of batch 32, then 128, then 8"), std::string::npos) << outcome.out;
  const nlohmann::json summary = json_of("r/summary.json"), plan = json_of("r/plan.json");
  EXPECT_EQ(summary["steps"], 10 + 10 + 2 + 40);
  EXPECT_EQ(summary["batches"], nlohmann::json({32, 128, 8}));
  EXPECT_GT(summary["test_accuracy"], 0.8);
  EXPECT_EQ(recorded("r", "batch"), (std::vector<double>{32, 8, 8})) << "at steps 20, 40 and 60";
  EXPECT_EQ(summary["planned_peak_bytes"], plan["arena_bytes"]) << "of the largest batch";
  ASSERT_EQ(weft(tiny_run("large", {"--epochs", "1", "--set", "batch=128"})).code, 0);
  EXPECT_EQ(plan["arena_bytes"], json_of("large/plan.json")["arena_bytes"]);
  for (const std::vector<std::string>& command : {std::vector<std::string>{"explain", "r", "--memory"},
                                                  {"plot", "r", "--metric", "batch"},
                                                  {"eval", "r"},
                                                  {"compare", "r", "large"}})
    EXPECT_EQ(weft(command).code, 0) << command.front();
  EXPECT_NE(weft({"explain", "r", "--steps", "1"}).out.find("batch 128"), std::string::npos);
}

TEST_F(ScheduleRun, InterruptedAmongItsStagesGoesOnBitwise) {
  std::vector<std::string> more = growing_and_small();
  more.insert(more.end(), {"--set", "model.hidden=16", "--set", "batch_schedule.rate_scaling=square_root"});
  ASSERT_EQ(weft(tiny_run("straight", more)).code, 0);
  more.insert(more.end(), {"--set", "checkpoint.every_steps=1", "--set", "checkpoint.keep=100"});
  ASSERT_EQ(weft(tiny_run("cut", more)).code, 0);
  // As if it had been killed after step 21, the first of the large batch.
  fs::remove(path("cut/summary.json"));
  fs::remove(path("cut/checkpoints/best"));
  std::vector<fs::path> later;
  for (const auto& entry : fs::directory_iterator(path("cut/checkpoints")))
    if (entry.path().filename().string() > "step-00000021") later.push_back(entry.path());
  EXPECT_EQ(later.size(), 41u);
  for (const fs::path& checkpoint : later) fs::remove_all(checkpoint);
  const Outcome resumed = weft({"train", "--resume", "cut", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const auto weights = [&](const std::string& run) {
    return read_all(path(run) / "checkpoints/step-00000062/model.safetensors");
  };
  EXPECT_FALSE(weights("straight").empty());
  EXPECT_EQ(weights("cut"), weights("straight"));
}

TEST_F(ScheduleRun, OfImagesAndMomentumIsRecorded) {
  write_idx("train", 320, 16);
  write_idx("test", 72, 16);
  std::vector<std::string> arguments =
      tiny_run("r", {"--epochs", "2", "--set", "image_schedule.boundaries=[1]", "--set", "image_schedule.sizes=[8,16]",
                     "--set", "batch=8", "--set", "momentum_schedule.name=one_cycle"});
  std::replace(arguments.begin(), arguments.end(), std::string("mlp"), std::string("resnet9"));
  const Outcome outcome = weft(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json_of("r/summary.json")["image_heights"], nlohmann::json({8, 16}));
  EXPECT_EQ(recorded("r", "image_height"), (std::vector<double>{8, 8, 16, 16}));
  for (const double momentum : recorded("r", "momentum")) {
    EXPECT_GE(momentum, 0.85);
    EXPECT_LE(momentum, 0.95);
  }
  EXPECT_EQ(weft({"explain", "r", "--steps", "1"}).code, 0);
}

TEST_F(ScheduleRun, SaysWhatIsWrongAndLeavesNothing) {
  expect_error(
      weft(tiny_run("r", {"--set", "batch_schedule.boundaries=[1]", "--set", "batch_schedule.batches=[32,400]"})), 2,
      "batch_schedule.batches: batch = 400 is larger than the training data");
  expect_error(weft(tiny_run("r", {"--set", "image_schedule.sizes=[4]"})), 2,
               "[mlp] cannot train on images of several sizes: 'fc1.weight' is (");
  expect_error(weft(tiny_run("r", {"--set", "optimizer.name=adamw", "--set", "momentum_schedule.name=one_cycle"})), 2,
               "momentum_schedule.name = 'one_cycle' with optimizer.name = 'adamw', which has no momentum");
  expect_error(weft(tiny_run("r", {"--set", "batch_schedule.batches=[32,64]"})), 2,
               "batch_schedule.batches wants 1 numbers for 0 boundaries");
  std::string rows = "a,b,y\n";
  for (int row = 0; row < 40; ++row)
    rows += std::to_string(row) + "," + std::to_string(row * 7 % 11) + ",c" + std::to_string(row % 2) + "\n";
  write_all(path("t.csv"), rows);
  expect_error(weft({"train", "--model", "mlp", "--data", "csv:t.csv?label=y", "--run", "r", "--batch", "4", "--set",
                     "image_schedule.sizes=[4]"}),
               2, "image_schedule is for images in classes, ");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(ScheduleRun, WhatHasNoEffectIsSaid) {
  const Outcome outcome =
      weft(tiny_run("r", {"--set", "batch_schedule.boundaries=[9]", "--set", "batch_schedule.batches=[16,64]"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("batch = 32 beside batch_schedule.batches = [16, 64] has no effect"), std::string::npos);
  EXPECT_NE(outcome.err.find("batch_schedule.boundaries: 9 in a run of 2 epochs has no effect"), std::string::npos);
}

}  // namespace
}  // namespace weft::cli_tests
