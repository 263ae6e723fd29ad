// Runs with a validation part: what it decides, and what ends a run before its last epoch.
#include "tests/cli/run_files.h"

namespace weft::cli_tests {
namespace {

class ValidationRun : public RunTest {
 protected:
  /// The records of one kind in the metrics of a run.
  std::vector<nlohmann::json> records_of(const std::string& run, const std::string& kind) const {
    std::istringstream lines(read_all(path(run) / "metrics.jsonl"));
    std::vector<nlohmann::json> found;
    for (std::string line; std::getline(lines, line);)
      if (auto record = nlohmann::json::parse(line); record["kind"] == kind) found.push_back(std::move(record));
    return found;
  }
};

TEST_F(ValidationRun, BestIsTheBestOnTheValidationPart) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "6", "--validation", "0.2", "--set", "checkpoint.every_epochs=2"})).code,
            0);
  double best = 0;
  for (const nlohmann::json& epoch : records_of("r", "epoch"))
    if (epoch["epoch"].get<int>() % 2 == 0) best = std::max(best, epoch["validation_accuracy"].get<double>());
  EXPECT_DOUBLE_EQ(json_of("r/summary.json")["best_validation_accuracy"], best);
}

TEST_F(ValidationRun, TestDataAreMeasuredOnceWithTheBestWeights) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "6", "--validation", "0.2"})).code, 0);
  for (const nlohmann::json& epoch : records_of("r", "epoch")) EXPECT_TRUE(epoch["test_loss"].is_null());
  ASSERT_EQ(records_of("r", "test").size(), 1u);
  const Outcome eval = weft({"eval", "r", "--checkpoint", "best", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_DOUBLE_EQ(nlohmann::json::parse(eval.out)["loss"], json_of("r/summary.json")["test_loss"]);
}

TEST_F(ValidationRun, TestDataAreMeasuredEachTimeOnRequest) {
  ASSERT_EQ(weft(tiny_run("r", {"--validation", "0.2", "--set", "evaluation.test_data=each_time"})).code, 0);
  for (const nlohmann::json& epoch : records_of("r", "epoch")) EXPECT_FALSE(epoch["test_loss"].is_null());
}

TEST_F(ValidationRun, ResumedAfterAnInterruptIsBitwiseTheSame) {
  const std::vector<std::string> more = {
      "--epochs", "40", "--validation", "0.2", "--set", "stop.patience=30", "--set", "evaluation.every_steps=3"};
  ASSERT_EQ(weft(tiny_run("straight", more)).code, 0);
  Process process(tiny_run("r", more), directory_);
  while (!fs::exists(path("r/checkpoints")) && !process.has_ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  process.send(SIGINT);
  const Outcome stopped = process.wait();
  if (stopped.code == 0) GTEST_SKIP() << "the run was over before the signal came";
  ASSERT_EQ(weft({"train", "--resume", "r", "--quiet"}).code, 0);
  EXPECT_EQ(last_state("r"), last_state("straight"));
  EXPECT_EQ(records("r"), records("straight"));
  EXPECT_EQ(json_of("r/summary.json")["best_validation_accuracy"],
            json_of("straight/summary.json")["best_validation_accuracy"]);
}

TEST_F(ValidationRun, DataOfTheirOwnCanBeTheValidationPart) {
  write_idx("more", 40, 8);
  ASSERT_EQ(weft(tiny_run("r", {"--validation", "idx:more-images,more-labels"})).code, 0);
  EXPECT_FALSE(records_of("r", "epoch").back()["validation_loss"].is_null());
  EXPECT_NE(read_all(path("r/spec.toml")).find("validation = \"idx:/"), std::string::npos) << "an absolute path";
}

TEST_F(ValidationRun, EndsWhereItNoLongerImproves) {
  const Outcome outcome = weft(tiny_run("r", {"--epochs", "500", "--validation", "0.2", "--set", "stop.patience=2",
                                              "--set", "stop.monitor=validation_accuracy"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json summary = json_of("r/summary.json");
  EXPECT_EQ(summary["ended"], "stop.patience");
  EXPECT_LT(summary["epochs_done"], 500);
  EXPECT_NE(outcome.out.find("ended"), std::string::npos) << outcome.out;
  const Outcome again = weft({"train", "--resume", "r"});
  EXPECT_NE(again.err.find("is finished"), std::string::npos) << again.err;
}

TEST_F(ValidationRun, EndsAtTheTargetAndSaysWhenItGotThere) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "500", "--validation", "0.2", "--set", "stop.target=0.7", "--set",
                                "stop.monitor=validation_accuracy"}))
                .code,
            0);
  const nlohmann::json summary = json_of("r/summary.json");
  EXPECT_EQ(summary["ended"], "stop.target");
  EXPECT_GE(summary["time_to_target"]["value"], 0.7);
  EXPECT_GT(summary["time_to_target"]["seconds"], 0);
}

TEST_F(ValidationRun, EndsAfterTheStepsThatAreAllowed) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "50", "--max-steps", "13"})).code, 0);
  const nlohmann::json summary = json_of("r/summary.json");
  EXPECT_EQ(summary["steps"], 13);
  EXPECT_EQ(summary["ended"], "max_steps");
  EXPECT_FALSE(summary["test_loss"].is_null()) << "evaluated at its end";
}

TEST_F(ValidationRun, EndsAfterTheTimeThatIsAllowed) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "100000", "--max-time", "0.5"})).code, 0);
  const nlohmann::json summary = json_of("r/summary.json");
  EXPECT_EQ(summary["ended"], "max_time");
  EXPECT_GE(summary["train_seconds"], 0.5);
}

TEST_F(ValidationRun, IsMeasuredWithinEpochsToo) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "2", "--validation", "0.2", "--set", "evaluation.every_steps=3"})).code, 0);
  std::vector<int> steps;
  for (const nlohmann::json& record : records_of("r", "validation")) steps.push_back(record["step"]);
  EXPECT_EQ(steps, (std::vector<int>{3, 6, 9, 12, 15})) << "8 steps per epoch, after whose last the epoch is evaluated";
}

TEST_F(ValidationRun, AMetricThatNobodyMeasuresIsRefused) {
  expect_error(weft(tiny_run("r", {"--set", "stop.patience=2"})), 2,
               "stop.monitor = 'validation_loss', but there is no validation part; set validation=0.1");
  expect_error(
      weft(tiny_run("r", {"--validation", "0.2", "--set", "stop.patience=2", "--set", "stop.monitor=val_loss"})), 2,
      "stop.monitor = 'val_loss' is no metric");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(ValidationRun, AScheduleThatWatchesTheTestDataIsWarnedOf) {
  const Outcome outcome =
      weft(tiny_run("r", {"--set", "schedule.name=plateau", "--set", "schedule.monitor=test_loss"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("set validation=0.1 and schedule.monitor=validation_loss"), std::string::npos)
      << outcome.err;
}

TEST_F(ValidationRun, AClassWithoutSamplesIsNamed) {
  write_idx("test", 60, 8, /*label_limit=*/3);
  const Outcome outcome = weft(tiny_run("r"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("the test part of the data has no sample of class 3"), std::string::npos) << outcome.err;
}

TEST_F(ValidationRun, SharesThatCannotBeAreRefused) {
  expect_error(weft(tiny_run("r", {"--validation", "1.5"})), 2, "validation = 1.5 is out of range");
  expect_error(weft(tiny_run("r", {"--validation", "nowhere"})), 2, "nowhere");
}

class ResumedRun : public RunTest {};

TEST_F(ResumedRun, GoesOnWithMoreEpochsAsIfItHadHadThemFromTheStart) {
  const std::vector<std::string> constant = {"--set", "schedule.name=constant"};
  std::vector<std::string> longer = constant, shorter = constant;
  longer.insert(longer.end(), {"--epochs", "5"});
  shorter.insert(shorter.end(), {"--epochs", "2"});
  ASSERT_EQ(weft(tiny_run("straight", longer)).code, 0);
  ASSERT_EQ(weft(tiny_run("r", shorter)).code, 0);
  const Outcome outcome = weft({"train", "--resume", "r", "--epochs", "5", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("goes on after step 20 with epochs from 2 to 5"), std::string::npos) << outcome.err;
  EXPECT_EQ(last_state("r"), last_state("straight"));
  EXPECT_EQ(records("r"), records("straight"));
  EXPECT_EQ(json_of("r/summary.json")["epochs_done"], 5);
  EXPECT_EQ(nlohmann::json::parse(read_all(path("r/changes.jsonl")))["changes"][0]["key"], "epochs");
}

TEST_F(ResumedRun, GoesOnAfterAnEndWithinAnEpoch) {
  const std::vector<std::string> constant = {"--set", "schedule.name=constant", "--epochs", "3"};
  std::vector<std::string> cut = constant;
  cut.insert(cut.end(), {"--max-steps", "13"});
  ASSERT_EQ(weft(tiny_run("straight", constant)).code, 0);
  ASSERT_EQ(weft(tiny_run("r", cut)).code, 0);
  const Outcome outcome = weft({"train", "--resume", "r", "--max-steps", "0", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(last_state("r"), last_state("straight"));
  EXPECT_FALSE(json_of("r/summary.json").contains("ended"));
}

TEST_F(ResumedRun, MayBeChangedMoreThanOnce) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "1"})).code, 0);
  ASSERT_EQ(weft({"train", "--resume", "r", "--epochs", "2", "--quiet"}).code, 0);
  ASSERT_EQ(
      weft({"train", "--resume", "r", "--set", "epochs=3", "--set", "optimizer.learning_rate=0.01", "--quiet"}).code,
      0);
  EXPECT_EQ(json_of("r/summary.json")["steps"], 30);
  EXPECT_NE(weft({"train", "--resume", "r", "--epochs", "3"}).err.find("is finished"), std::string::npos)
      << "what is the same already is no change";
}

TEST_F(ResumedRun, ACheckpointFromBeforeAChangeIsStillItsOwn) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "2"})).code, 0);
  const std::string newest = last_checkpoint("r");
  ASSERT_EQ(weft({"train", "--resume", "r", "--epochs", "3", "--quiet"}).code, 0);
  // As where the process had ended before the first checkpoint after the change.
  fs::remove_all(path("r/checkpoints") / last_checkpoint("r"));
  fs::remove(path("r/summary.json"));
  ASSERT_EQ(last_checkpoint("r"), newest);
  const Outcome again = weft({"train", "--resume", "r", "--quiet"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json_of("r/summary.json")["steps"], 30);
}

TEST_F(ResumedRun, IsFinishedWhereOnlyTheWayItComputesChanges) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const Outcome outcome = weft({"train", "--resume", "r", "--set", "checkpoint.keep=7"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "weft: 'r' is finished: this is its summary\n");
}

TEST_F(ResumedRun, SaysWhichKeyMayNotChangeAndWhatToDo) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const std::string before = read_all(path("r/spec.toml"));
  expect_error(weft({"train", "--resume", "r", "--set", "model.name=lenet5"}), 2,
               "'model.name' cannot change in a run that has begun");
  expect_error(weft({"train", "--resume", "r", "--batch", "64"}), 2, "--resume takes --batch from the run directory");
  expect_error(weft({"train", "--resume", "r", "--epochs", "1"}), 2, "has done 20 steps");
  EXPECT_EQ(read_all(path("r/spec.toml")), before);
  EXPECT_TRUE(fs::exists(path("r/summary.json")));
}

}  // namespace
}  // namespace weft::cli_tests
