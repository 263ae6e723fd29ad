// Looking at runs: plot, compare, event files.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

using Watch = ProgramTest;

TEST_F(Watch, PlotDrawsLossAndAccuracyAsText) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "3"})).code, 0);
  const Outcome outcome = weft({"plot", "r"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("r\n\nloss\n", 0), 0u) << outcome.out;
  for (const char* text : {"\naccuracy\n", " train\n", " test\n", "epoch", " % |"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
}

TEST_F(Watch, PlotWritesPictures) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "2"})).code, 0);
  ASSERT_EQ(weft({"plot", "r", "-o", "curves.svg"}).code, 0);
  ASSERT_EQ(weft({"plot", "r", "-o", "curves.png", "--metric", "train_loss", "--x", "seconds"}).code, 0);
  EXPECT_NE(read_all(path("curves.svg")).find("</svg>"), std::string::npos);
  EXPECT_EQ(read_all(path("curves.png")).substr(1, 3), "PNG");
}

TEST_F(Watch, PlotRefusesAnotherKindOfFileBeforeItReadsTheRuns) {
  const Outcome outcome = weft({"plot", "none", "-o", "curves.pdf"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find(".svg"), std::string::npos) << outcome.err;
}

TEST_F(Watch, PlotNamesTheMetricsThereAre) {
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const Outcome outcome = weft({"plot", "r", "--metric", "los"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("learning_rate"), std::string::npos) << outcome.err;
}

TEST_F(Watch, GradientNormIsRecordedAndDrawnWhereAskedFor) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "10", "--set", "metrics.gradient_norm=true"})).code, 0);
  const Outcome outcome = weft({"plot", "r", "--metric", "gradient_norm"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("r\n\ngradient_norm\n", 0), 0u) << outcome.out;
}

TEST_F(Watch, CompareShowsWhatDiffersAndTheTimeToTheAccuracyOfAll) {
  ASSERT_EQ(weft(tiny_run("a", {"--epochs", "2"})).code, 0);
  ASSERT_EQ(weft(tiny_run("b", {"--epochs", "2", "--set", "optimizer.momentum=0.5"})).code, 0);
  const Outcome outcome = weft({"compare", "a", "b", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto runs = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["differences"], (nlohmann::json{{"optimizer.momentum", "0.9"}}));
  EXPECT_EQ(runs[1]["differences"], (nlohmann::json{{"optimizer.momentum", "0.5"}}));
  EXPECT_EQ(runs[0]["summary"]["epochs"], 2);
  EXPECT_GE(runs[1]["seconds_to_accuracy"], 0) << "no null; of a fast machine's milliseconds nothing may be left";
  const std::string table = weft({"compare", "a", "b"}).out;
  EXPECT_NE(table.find("optimizer.momentum"), std::string::npos) << table;
  EXPECT_EQ(table.find("optimizer.nesterov"), std::string::npos) << table;
}

TEST_F(Watch, CompareShowsTheEpochsOfARunThatWasKilled) {
  ASSERT_EQ(weft(tiny_run("whole", {"--epochs", "2", "--validation", "0.2"})).code, 0);
  ASSERT_EQ(weft(tiny_run("killed", {"--epochs", "3", "--validation", "0.2"})).code, 0);
  // As a signal would have left it in its third epoch.
  fs::remove(path("killed/summary.json"));
  std::istringstream records(read_all(path("killed/metrics.jsonl")));
  std::string kept;
  for (std::string line; std::getline(records, line) && line.find("\"epoch\":3") == line.npos;) kept += line + "\n";
  write_all(path("killed/metrics.jsonl"), kept + "{\"kind\":\"ep");
  const auto runs = nlohmann::json::parse(weft({"compare", "whole", "killed", "--json"}).out);
  EXPECT_TRUE(runs[1]["summary"].is_null());
  EXPECT_EQ(runs[1]["last_epoch"]["epoch"], 2);
  const auto last = nlohmann::json::parse(kept.substr(kept.rfind("{\"kind\":\"epoch\"")));
  EXPECT_EQ(runs[1]["last_epoch"]["validation_loss"], last["validation_loss"]);
  EXPECT_EQ(runs[1]["last_epoch"]["train_loss"], last["train_loss"]);
  const std::string table = weft({"compare", "whole", "killed"}).out;
  EXPECT_NE(table.find("2 of 3 epochs"), std::string::npos) << table;
  std::istringstream rows(table);
  int checked = 0;
  for (std::string row; std::getline(rows, row);)
    for (const char* title : {"validation loss", "train loss", "train time", "speed", "best accuracy"})
      if (row.starts_with(title)) {
        EXPECT_FALSE(row.ends_with("-")) << row;
        ++checked;
      }
  EXPECT_EQ(checked, 5) << table;
}

TEST_F(Watch, CompareWantsTwoRuns) { EXPECT_EQ(weft({"compare", "a"}).code, 2); }

TEST_F(Watch, TensorboardFilesGoOnWhereARunIsResumed) {
  ASSERT_EQ(weft(tiny_run("r", {"--tensorboard"})).code, 0);
  const auto count = [&] {
    const fs::directory_iterator files(path("r/tensorboard"));
    return std::distance(begin(files), end(files));
  };
  EXPECT_EQ(count(), 1);
  fs::remove(path("r/summary.json"));
  ASSERT_EQ(weft({"train", "--resume", "r", "--quiet"}).code, 0);
  EXPECT_EQ(count(), 2);
}

}  // namespace
}  // namespace weft::cli_tests
