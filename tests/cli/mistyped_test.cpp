// What the program answers to the words of other programs.
#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

class Mistyped : public ProgramTest {};

TEST_F(Mistyped, HelpIsACommandToo) {
  const Outcome all = weft({"help"}), train = weft({"help", "train"});
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(all.out, weft({"--help"}).out);
  EXPECT_EQ(train.code, 0);
  EXPECT_EQ(train.out, weft({"train", "--help"}).out);
}

TEST_F(Mistyped, AnOptionThatIsAKeyOfTheRecipe) {
  expect_error(weft({"train", "--lr", "0.1"}), 2,
               "unknown option '--lr'; it is a key of the recipe: --set "
               "optimizer.learning_rate=VALUE");
  expect_error(weft({"train", "--weight-decay=0.1"}), 2, "--set optimizer.weight_decay=VALUE");
}

TEST_F(Mistyped, AKeyThatHasAFlag) {
  expect_error(weft({"train", "--batch-size", "64"}), 2, "unknown option '--batch-size'; did you mean '--batch'?");
  expect_error(weft({"train", "--max_epochs", "64"}), 2, "did you mean '--epochs'?");
}

TEST_F(Mistyped, WhatOtherProgramsHave) {
  expect_error(weft({"train", "--gpus", "2"}), 2, "weft computes on the CPU");
  expect_error(weft({"train", "--pretrained"}), 2, "--init FILE");
  expect_error(weft({"resume", "runs/x"}), 2, "unknown command 'resume'; `weft train --resume RUN`");
}

TEST_F(Mistyped, TheFileOfAnExportComesLast) {
  expect_error(weft({"export", "r", "--out", "f.safetensors"}), 2, "the file comes last: `weft export RUN FILE`");
  expect_error(weft({"plot", "r", "--out", "f.png"}), 2, "did you mean '--output'?");
}

TEST_F(Mistyped, OptionsOfACommandWithinACommand) {
  expect_error(weft({"cluster", "probe", "--outputt", "x"}), 2,
               "unknown option '--outputt'; did you mean '--output'?; see `weft cluster probe --help`");
  expect_error(weft({"cluster", "bench", "--out", "x"}), 2, "see `weft cluster bench --help`");
}

TEST_F(Mistyped, CommandsWithinACommand) {
  expect_error(weft({"cluster", "prob"}), 2,
               "unknown command 'prob'; did you mean 'probe'?; see `weft cluster --help`");
}

TEST_F(Mistyped, AWordForANumber) {
  expect_error(weft({"train", "--epochs", "two"}), 2, "--epochs wants a number, got 'two'");
}

TEST_F(Mistyped, WhatIsMissingIsShownInItsPlace) {
  expect_error(weft({"export", "r"}), 2, "FILE is required: `weft export RUN FILE`");
  expect_error(weft({"train", "--resume"}), 2, "--resume wants a value");
}

TEST_F(Mistyped, APathWithoutItsKindOfData) {
  fs::create_directories(path("pictures/cat"));
  write_all(path("rows.csv"), "a,b\n1,2\n");
  expect_error(weft({"data", "pictures"}), 2,
               "it is a path, so write images:pictures for a folder of pictures by class");
  expect_error(weft({"data", "rows.csv"}), 2, "write 'csv:rows.csv?label=COLUMN' for a table");
}

TEST_F(Mistyped, AFolderOfRunsNamesTheNewest) {
  fs::create_directories(path("runs/a"));
  write_all(path("runs/a/spec.toml"), "");
  expect_error(weft({"eval", "runs"}), 2, "the newest one in it is 'runs/a'");
}

}  // namespace
}  // namespace weft::cli_tests
