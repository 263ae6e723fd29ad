// What a trial has come to, by the metrics that its run has left.
#include "weft/tune/study/trial_records.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "weft/run/checkpoint/manifest.h"

namespace weft::tune {
namespace {

namespace fs = std::filesystem;
using State = StudyTrial::State;

class TrialRecordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    study_.emplace(Study::create(directory_ / "study", {.space = Space({log_real("optimizer.learning_rate", 1e-4, 1)}),
                                                        .recipe = "epochs = 3\n",
                                                        .objectives = {{"validation_accuracy", true}}}));
    records_.emplace(*study_, [this](const StudyTrial& trial) { told_.push_back(trial.state); });
  }

  /// The first trial, running, with a run that has measured so many epochs.
  StudyTrial begun(int64_t target, int measured) {
    const StudyTrial trial = *study_->change([&](const std::vector<StudyTrial>&) {
      return StudyTrial{.number = 0,
                        .state = State::running,
                        .values = {{"optimizer.learning_rate", 0.1}},
                        .target = target,
                        .owner = "somebody",
                        .plan = {.parameters = 100, .memory = 1000, .epochs = 3}};
    });
    const fs::path run = study_->run_of(0);
    fs::create_directories(run);
    std::ofstream metrics(run / "metrics.jsonl");
    for (int epoch = 1; epoch <= measured; ++epoch)
      metrics << R"({"kind":"epoch","step":)" << 40 * epoch << R"(,"epoch":)" << epoch << R"(,"validation_accuracy":0.)"
              << 4 + epoch << R"(,"validation_loss":1.0,"train_seconds":)" << epoch << ".5}\n";
    return trial;
  }
  /// The newest checkpoint of that run says that it has ended by itself.
  void end_early(const char* why) const {
    const fs::path checkpoint = study_->run_of(0) / "checkpoints" / "step-00000040";
    fs::create_directories(checkpoint);
    run::Manifest manifest;
    manifest.position.step = 40;
    manifest.position.ended = why;
    std::ofstream(checkpoint / "manifest.json") << run::print_manifest(manifest);
  }
  StudyTrial kept() { return study_->trials().at(0); }

  const TemporaryFolder folder_;
  const fs::path directory_ = folder_.path();
  std::optional<Study> study_;
  std::optional<TrialRecords> records_;
  std::vector<State> told_;
};

TEST_F(TrialRecordsTest, ATrialThatCameToItsEndIsFinishedAndNobodys) {
  StudyTrial trial = begun(3, 3);
  records_->settle(trial, {});
  EXPECT_EQ(kept().state, State::finished);
  EXPECT_EQ(kept().owner, "");
  ASSERT_EQ(kept().results.size(), 1u);
  EXPECT_DOUBLE_EQ(kept().results[0], 0.7);
  EXPECT_EQ(told_, std::vector{State::finished});
}

TEST_F(TrialRecordsTest, AtARungItPauses) {
  StudyTrial trial = begun(1, 1);
  records_->settle(trial, {});
  EXPECT_EQ(kept().state, State::paused);
  EXPECT_EQ(kept().curve.size(), 1u);
}

TEST_F(TrialRecordsTest, ARunThatEndsBeforeItsRungIsFinished) {
  StudyTrial trial = begun(2, 1);
  end_early("stop.target");
  records_->settle(trial, {});
  EXPECT_EQ(kept().state, State::finished);
}

TEST_F(TrialRecordsTest, ARunThatEndsAtItsRungIsFinished) {
  StudyTrial trial = begun(1, 1);
  end_early("max_steps");
  records_->settle(trial, {});
  EXPECT_EQ(kept().state, State::finished);
}

TEST_F(TrialRecordsTest, ThereIsMoreOfItsMetricsOnceItHasMeasuredMore) {
  const StudyTrial trial = begun(3, 1);
  const uintmax_t one = records_->metrics_bytes(trial);
  EXPECT_GT(one, 0u);
  std::ofstream(study_->run_of(0) / "metrics.jsonl", std::ios::app) << "{}\n";
  EXPECT_EQ(records_->metrics_bytes(trial), one + 3);
  fs::remove_all(study_->run_of(0));
  EXPECT_EQ(records_->metrics_bytes(trial), 0u);
}

TEST_F(TrialRecordsTest, OneThatTheSchedulerCutIsStopped) {
  StudyTrial trial = begun(3, 2);
  trial.is_cut = true;
  records_->settle(trial, {});
  EXPECT_EQ(kept().state, State::stopped);
}

TEST_F(TrialRecordsTest, WithoutAResultItHasFailedAndSaysOfWhat) {
  StudyTrial trial = begun(3, 0);
  records_->settle(trial, {});
  EXPECT_EQ(kept().state, State::failed);
  EXPECT_EQ(kept().reason, "it measured no finite validation_accuracy");
}

TEST_F(TrialRecordsTest, AnInterruptedOneKeepsWhatItHasMeasured) {
  StudyTrial trial = begun(3, 1);
  records_->take_results(trial);
  records_->end_interrupted(trial);
  EXPECT_EQ(kept().state, State::interrupted);
  EXPECT_EQ(kept().curve.size(), 1u);
}

}  // namespace
}  // namespace weft::tune
