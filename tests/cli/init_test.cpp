// weft init: recipes for each kind of data, which train as they are.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;

class Init : public ProgramTest {
 protected:
  /// Trains the recipe for few epochs; the summary.
  json train(const std::string& recipe, const std::string& epochs) {
    const Outcome outcome = weft({"train", recipe, "--run", "r", "--threads", "1", "--quiet", "--epochs", epochs});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(read_all(path("r/summary.json")));
  }
  /// "key = value" as it stands in the recipe, on a line of its own.
  void expect_line(const std::string& recipe, const std::string& line) {
    const std::string text = read_all(path(recipe));
    EXPECT_NE(text.find("\n" + line + "\n"), std::string::npos) << "wanted: " << line << "\n" << text;
  }
  void write_table(const std::string& name, int rows, bool values) {
    std::string text = "x,y,colour,goal\n";
    uint32_t seed = 7;
    for (int row = 0; row < rows; ++row) {
      const auto next = [&] {
        seed = seed * 1664525u + 1013904223u;
        return static_cast<double>(seed >> 8) / (1 << 24);
      };
      const double x = 4 * next() - 2, y = 4 * next() - 2;
      text += std::to_string(x) + "," + std::to_string(y) + (next() < 0.5 ? ",red," : ",blue,");
      text += values ? std::to_string(3 * x - 2 * y) + "\n" : x > y ? "up\n" : x > -1 ? "down\n" : "side\n";
    }
    write_all(path(name), text);
  }
};

TEST_F(Init, OfImagesTheRecipeTrains) {
  const Outcome outcome = weft({"init", data(), "-o", "images.toml", "--threads", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"images.toml: resnet9 on 288 images (1,8,8) of 4 classes for training, 32 for validation, 72 for testing",
        " on 1 threads", "train images.toml\n"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  expect_line("images.toml", "data = \"" + data() + "\"");
  expect_line("images.toml", "name = \"resnet9\"");
  expect_line("images.toml", "flip = \"none\"");
  EXPECT_GT(train("images.toml", "8")["test_accuracy"], 0.95);
}

TEST_F(Init, EveryChoiceHasAComment) {
  ASSERT_EQ(weft({"init", data(), "-o", "images.toml"}).code, 0);
  std::istringstream lines(read_all(path("images.toml")));
  std::string before;
  int keys = 0;
  for (std::string line; std::getline(lines, line); before = line) {
    EXPECT_LE(line.size(), 110u) << line;
    if (line.find(" = ") == std::string::npos || line.starts_with("#")) continue;
    ++keys;
    EXPECT_TRUE(before.starts_with("# ")) << line;
  }
  EXPECT_GE(keys, 12);
}

TEST_F(Init, OfATableOfClassesTheRecipeTrains) {
  write_table("t.csv", 600, false);
  ASSERT_EQ(weft({"init", "csv:t.csv", "-o", "t.toml"}).code, 0);
  expect_line("t.toml", "name = \"mlp\"");
  expect_line("t.toml", "label_smoothing = 0.1");
  const json summary = train("t.toml", "40");
  EXPECT_EQ(summary["task"], "classification");
  EXPECT_GT(summary["test_accuracy"], 0.9);
}

TEST_F(Init, OtherMistakesInATableAreNoReasonToPredictNumbers) {
  write_all(path("t.csv"), "x,goal\n1,5\n2,5\n3,5\n4,5\n");
  expect_error(weft({"init", "csv:t.csv", "-o", "t.toml"}), 1, "all 3 training rows have the label '5'");
  EXPECT_FALSE(fs::exists(path("t.toml")));
}

TEST_F(Init, WordsOfTheNextCommandAreQuoted) {
  const Outcome outcome = weft({"init", data(), "-o", "my first's.toml", "--threads", "1"});
  EXPECT_NE(outcome.out.find("train 'my first'\\''s.toml'\n"), std::string::npos) << outcome.out;
}

TEST_F(Init, NumbersThatMakeNoClassesArePredicted) {
  write_table("t.csv", 600, true);
  const Outcome written = weft({"init", "csv:t.csv", "-o", "t.toml"});
  ASSERT_EQ(written.code, 0);
  EXPECT_NE(written.err.find("different labels in"), std::string::npos) << written.err;
  EXPECT_NE(written.err.find("the recipe predicts the number, by task=regression"), std::string::npos) << written.err;
  expect_line("t.toml", "data = \"csv:t.csv?task=regression\"");
  const json summary = train("t.toml", "40");
  EXPECT_EQ(summary["task"], "regression");
  EXPECT_GT(summary["test_r2"], 0.95);
}

TEST_F(Init, UnevenClassesAreSaid) {
  std::string text = "x,kind\n";
  for (int row = 0; row < 100; ++row) text += std::to_string(row % 10) + (row % 10 == 0 ? ",rare\n" : ",usual\n");
  write_all(path("t.csv"), text);
  ASSERT_EQ(weft({"init", "csv:t.csv"}).code, 0);
  EXPECT_NE(read_all(path("t.toml")).find("'usual' has 90 %"), std::string::npos) << read_all(path("t.toml"));
}

TEST_F(Init, OfATextTheRecipeTrains) {
  std::string text;
  for (int at = 0; at < 600; ++at) text += "abcdefgh ";
  write_all(path("t.txt"), text);
  ASSERT_EQ(weft({"init", "text:t.txt?length=16", "-o", "t.toml", "--threads", "1"}).code, 0);
  expect_line("t.toml", "name = \"transformer_lm\"");
  expect_line("t.toml", "dropout = \"0.1\"");
  EXPECT_LT(train("t.toml", "8")["test_loss"], 0.5);
}

TEST_F(Init, AFileThatIsThereStays) {
  write_all(path("idx.toml"), "mine");
  expect_error(weft({"init", data()}), 2, "'idx.toml' exists; name another file with -o, or replace it with --force");
  expect_error(weft({"init", "fashion-mnist:none", "-o", "idx.toml"}), 2, "'idx.toml' exists");
  EXPECT_EQ(read_all(path("idx.toml")), "mine");
  EXPECT_EQ(weft({"init", data(), "--force"}).code, 0);
  EXPECT_NE(read_all(path("idx.toml")), "mine");
}

TEST_F(Init, StandardOutputIsTheRecipeAlone) {
  const Outcome outcome = weft({"init", data(), "-o", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("# A recipe to start from")) << outcome.out;
  EXPECT_FALSE(fs::exists(path("-")));
  write_all(path("piped.toml"), outcome.out);
  EXPECT_GT(train("piped.toml", "1")["steps"], 0);
}

TEST_F(Init, WhatIsWrongWithTheDataLeavesNoFile) {
  expect_error(weft({"init", "csv:none.csv"}), 1, "none.csv");
  write_all(path("t.csv"), "x,y\n1,a\n2,a\n3,a\n4,a\n5,a\n");
  expect_error(weft({"init", "csv:t.csv"}), 1, "choose another with label=COLUMN");
  expect_error(weft({"init", "cvs:t.csv"}), 2, "unknown data");
  EXPECT_FALSE(fs::exists(path("t.toml")));
}

}  // namespace
}  // namespace weft::cli_tests
