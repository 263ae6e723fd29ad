// The whole command line over a library with an op, a model and data of somebody's own.
#include "tests/support/own_library.h"

#include <gtest/gtest.h>

#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"
#include "weft/cli/run.h"

namespace weft::cli {
namespace {

class OwnLibrary : public FilesTest {
 protected:
  /// What it prints; fails unless the exit code is 0.
  std::string run_program(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "mine");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    const int code = run(static_cast<int>(argv.size()), argv.data(), library_);
    std::string text = testing::internal::GetCapturedStdout();
    EXPECT_EQ(code, 0) << text;
    return text;
  }
  std::string train_run() const {
    run_program({"train", "--model", "wave", "--data", "wave:?samples=64", "--epochs", "2", "--batch", "16",
                 "--threads", "1", "--quiet", "--run", path("run")});
    return path("run");
  }
  Library library_ = own_library();
};

void expect_holds(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' not in: " << text;
}

TEST_F(OwnLibrary, IsListed) {
  expect_holds(run_program({"models", "wave"}), "--set model.width=16: hidden");
  expect_holds(run_program({"ops", "sine"}), "sine(x) -> y");
  expect_holds(run_program({"data", "wave:?samples=64"}), "64 for training, 16 for testing");
}

TEST_F(OwnLibrary, IsCompletedByShellsUnderTheNameOfTheProgram) {
  expect_holds(run_program({"completion", "bash"}), "complete -F _mine mine\n");
  expect_holds(run_program({"complete-words", "train", "--model", "wav"}), "wave\t");
  EXPECT_EQ(run_program({"complete-words", "train", "--data", "wav"}).substr(0, 5), "wave:");
  expect_holds(run_program({"complete-words", "train", "--model", "wave", "--set", "model.w"}), "model.width=\t");
}

TEST_F(OwnLibrary, HasManualPagesUnderTheNameOfTheProgram) {
  run_program({"man", "--directory", path("man1")});
  expect_holds(read_text(path("man1") + "/mine-models.1"), "\n\\fBwave\\fR\n");
  expect_holds(read_text(path("man1") + "/mine.1"), "mine \\- weft trains deep networks");
}

TEST_F(OwnLibrary, IsTrainedEvaluatedAndExplained) {
  const std::string trained = train_run();
  expect_holds(run_program({"eval", trained}), "of wave:?samples=64");
  expect_holds(run_program({"explain", trained, "--steps", "1"}), "sine");
  expect_holds(run_program({"graph", trained}), "= sine(");
}

TEST_F(OwnLibrary, PredictsDataThatASpecNames) {
  expect_holds(run_program({"predict", train_run(), "wave:?samples=20"}), "row 5: ");
}

TEST_F(OwnLibrary, AsksForASpecWhereItsDataAreNoTable) {
  const std::string trained = train_run();
  std::vector<std::string> arguments{"mine", "predict", trained, "rows.csv"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(static_cast<int>(argv.size()), argv.data(), library_), 1);
  expect_holds(testing::internal::GetCapturedStderr(), "trained on 'wave:?samples=64'; name data of that kind");
}

}  // namespace
}  // namespace weft::cli
