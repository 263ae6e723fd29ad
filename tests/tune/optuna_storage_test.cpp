// The tables of Optuna that a study is written to as well. tests/tune/optuna_storage_test.py reads them by Optuna
// itself.
#include "weft/tune/study/optuna_storage.h"

#include <gtest/gtest.h>

#include "tests/support/files_for_tests.h"

namespace weft::tune {
namespace {

using State = StudyTrial::State;

class OptunaStorageTest : public FilesTest {
 protected:
  static StudySettings settings() {
    return {.space = Space({log_real("rate", 1e-4, 1), integer("batch", 16, 256, 16),
                            choice("optimizer", {std::string("sgd"), std::string("adamw")})}),
            .recipe = "epochs = 3\n",
            .objectives = {{"validation_accuracy", true}, {"size", false}}};
  }
  Study study(const std::string& name = "study") const { return Study::create(folder_ / name, settings()); }
  static StudyTrial trial(int64_t number, State state = State::finished) {
    return {.number = number,
            .state = state,
            .values = {{"rate", 0.1}, {"batch", int64_t{32}}, {"optimizer", std::string("adamw")}},
            .target = 3,
            .results = {0.75, 1000},
            .curve = {{1, 0.5}, {3, 0.75}},
            .plan = {.parameters = 100, .memory = 1000, .epochs = 3},
            .seconds = 1.5};
  }
  std::string value_of(const std::string& sql) const {
    Database database(folder_ / "optuna.db", Database::Mode::open);
    Statement statement = database.prepare(sql.c_str());
    return statement.step() ? statement.text(0) : "nothing";
  }
};

TEST_F(OptunaStorageTest, TheFileMayBeNamedAsOptunaDoes) {
  EXPECT_EQ(storage_file("sqlite:///folder/a.db"), "folder/a.db");
  EXPECT_EQ(storage_file("a.db"), "a.db");
  expect_error([] { storage_file("mysql://host/a"); }, ErrorKind::usage, {"weft writes SQLite files"});
}

TEST_F(OptunaStorageTest, AFileThatIsNoDatabaseIsNamed) {
  const std::string text(8192, 'x');
  const std::string file = write("notes.txt", Bytes(text.begin(), text.end()));
  expect_error([&] { OptunaStorage(file, study()); }, ErrorKind::data,
               {"notes.txt' is no SQLite database", "name another file for --storage"});
}

TEST_F(OptunaStorageTest, HoldsTheStudyWithItsDirections) {
  OptunaStorage storage(folder_ / "optuna.db", study());
  EXPECT_EQ(value_of("SELECT study_name FROM studies"), "study");
  EXPECT_EQ(value_of("SELECT group_concat(direction) FROM study_directions"), "MAXIMIZE,MINIMIZE");
  EXPECT_EQ(value_of("SELECT schema_version FROM version_info"), "12");
}

TEST_F(OptunaStorageTest, ATrialHasItsStateAndValues) {
  OptunaStorage storage(folder_ / "optuna.db", study());
  storage.write(trial(0));
  EXPECT_EQ(value_of("SELECT state FROM trials"), "COMPLETE");
  EXPECT_EQ(value_of("SELECT group_concat(value) FROM trial_values"), "0.75,1000.0");
  EXPECT_EQ(value_of("SELECT group_concat(step || ':' || intermediate_value) FROM trial_intermediate_values"),
            "1:0.5,3:0.75");
  EXPECT_EQ(value_of("SELECT param_value FROM trial_params WHERE param_name = 'optimizer'"), "1.0");
  EXPECT_EQ(value_of("SELECT datetime_complete IS NOT NULL FROM trials"), "1");
}

TEST_F(OptunaStorageTest, StatesAreThoseOfOptuna) {
  OptunaStorage storage(folder_ / "optuna.db", study());
  int64_t number = 0;
  for (const State state : {State::running, State::interrupted, State::paused, State::finished, State::stopped,
                            State::failed, State::refused})
    storage.write(trial(number++, state));
  EXPECT_EQ(value_of("SELECT group_concat(state) FROM (SELECT state FROM trials ORDER BY number)"),
            "RUNNING,RUNNING,RUNNING,COMPLETE,PRUNED,FAIL,FAIL");
}

TEST_F(OptunaStorageTest, ATrialThatGoesOnIsTheSameTrial) {
  OptunaStorage storage(folder_ / "optuna.db", study());
  storage.write(trial(0, State::running));
  storage.write(trial(0, State::paused));
  storage.write(trial(0));
  EXPECT_EQ(storage.count(), 1);
  EXPECT_EQ(value_of("SELECT count(*) FROM trial_params"), "3");
  EXPECT_EQ(value_of("SELECT count(*) FROM trial_values"), "2");
}

TEST_F(OptunaStorageTest, AFileHoldsSeveralStudies) {
  OptunaStorage one(folder_ / "optuna.db", study("one")), other(folder_ / "optuna.db", study("other"));
  one.write(trial(0));
  other.write(trial(0));
  other.write(trial(1));
  EXPECT_EQ(one.count(), 1);
  EXPECT_EQ(other.count(), 2);
}

TEST_F(OptunaStorageTest, TheSameStudyIsFoundAgain) {
  { OptunaStorage(folder_ / "optuna.db", study()).write(trial(0)); }
  OptunaStorage storage(folder_ / "optuna.db", study());
  EXPECT_EQ(storage.count(), 1);
}

TEST_F(OptunaStorageTest, AnotherStudyOfTheNameIsRefused) {
  std::filesystem::create_directories(folder_ / "a");
  std::filesystem::create_directories(folder_ / "b");
  OptunaStorage storage(folder_ / "optuna.db", study("a/study"));
  expect_error([&] { OptunaStorage(folder_ / "optuna.db", study("b/study")); }, ErrorKind::usage,
               {"holds a study 'study' already", "name another file"});
}

TEST_F(OptunaStorageTest, AFileOfAnotherOptunaIsNamed) {
  { OptunaStorage storage(folder_ / "optuna.db", study()); }
  {
    Database database(folder_ / "optuna.db", Database::Mode::open);
    database.execute("UPDATE version_info SET schema_version = 11, library_version = '2.0.0'");
  }
  expect_error([&] { OptunaStorage(folder_ / "optuna.db", study()); }, ErrorKind::usage,
               {"the tables of Optuna 2.0.0", "optuna storage upgrade"});
}

}  // namespace
}  // namespace weft::tune
