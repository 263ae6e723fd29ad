// What is left of a study of weft tune, and what one that is gone on with makes of it.
#include "tests/cli/tune_files.h"
#include "weft/tune/study/optuna_storage.h"
#include "weft/tune/study/study.h"

namespace weft::cli_tests {
namespace {

class TuneResumeTest : public RecipeToTune {};

TEST_F(TuneResumeTest, AResumedStudyKeepsItsWorkers) {
  ASSERT_EQ(weft(tune({"--trials", "1", "--workers", "1"})).code, 0);
  ASSERT_EQ(weft({"tune", "--resume", "study", "--trials", "2"}).code, 0);
  EXPECT_EQ(tune::Study::open(path("study")).workers(), 1);
  ASSERT_EQ(weft({"tune", "--resume", "study", "--trials", "2", "--workers", "2"}).code, 0);
  EXPECT_EQ(tune::Study::open(path("study")).workers(), 2);
}

TEST_F(TuneResumeTest, AWinnerWhoseRunIsGoneIsToBeTrainedAnew) {
  ASSERT_EQ(weft(tune({"--trials", "1"})).code, 0);
  fs::remove_all(path("study/runs/0000"));
  const Outcome outcome = weft({"tune", "--resume", "study", "--trials", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("the run of the best trial, 0, is gone"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("`weft train study/best.toml`"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out.find("runs/0000"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("train study/best.toml"), std::string::npos) << "it has been said: " << outcome.out;
}

TEST_F(TuneResumeTest, AFolderOfRecipesThatIsGoneIsMadeAnew) {
  ASSERT_EQ(weft(tune({"--trials", "1"})).code, 0);
  fs::remove_all(path("study/trials"));
  const Outcome outcome = weft({"tune", "--resume", "study", "--trials", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(path("study/trials/0001.toml")));
}

TEST_F(TuneResumeTest, AStorageOfOptunaFollowsTheStudy) {
  ASSERT_EQ(weft(tune({"--trials", "2", "--storage", "sqlite:///optuna.db"})).code, 0);
  ASSERT_TRUE(fs::exists(path("optuna.db")));
  ASSERT_EQ(weft({"tune", "--resume", "study", "--trials", "4"}).code, 0);
  tune::OptunaStorage storage(path("optuna.db"), tune::Study::open(path("study")));
  EXPECT_EQ(storage.count(), 4);
}

TEST_F(TuneResumeTest, AStorageThatCannotBeWrittenIsNotKept) {
  ASSERT_EQ(weft(tune({"--trials", "1"})).code, 0);
  EXPECT_NE(weft({"tune", "--resume", "study", "--storage", "nowhere/optuna.db"}).code, 0);
  const Outcome outcome = weft({"tune", "--resume", "study", "--trials", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(TuneResumeTest, AStorageThatIsRefusedLeavesNoStudy) {
  expect_error(weft(tune({"--storage", "recipe.toml"})), 1, "'recipe.toml' is no SQLite database");
  EXPECT_FALSE(fs::exists(path("study")));
}

TEST_F(TuneResumeTest, ShowCutsRemarksAtAWordAndSaysWhereTheyAreWhole) {
  ASSERT_EQ(weft(tune({"--trials", "1"})).code, 0);
  EXPECT_EQ(weft({"tune", "show", "study"}).out.find("remark"), std::string::npos) << "there is none";
  std::string reason;
  for (int word = 10; word < 40; ++word) reason += "word" + std::to_string(word) + " ";
  {
    tune::Study study = tune::Study::open(path("study"));
    tune::StudyTrial trial = study.trials().at(0);
    trial.state = tune::StudyTrial::State::failed;
    trial.reason = reason;
    study.update(trial);
  }
  const std::string text = weft({"tune", "show", "study"}).out;
  EXPECT_NE(text.find("  remark"), std::string::npos) << text;
  EXPECT_NE(text.find("word20…\n"), std::string::npos) << text;
  EXPECT_NE(text.find("--json has the remarks whole\n"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(weft({"tune", "show", "study", "--json"}).out)["trials"][0]["reason"], reason);
}

}  // namespace
}  // namespace weft::cli_tests
