// Tables and texts from the command line: train, evaluate, predict, and the same encoding throughout.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;

class TableRun : public ProgramTest {
 protected:
  /// Two classes in a circle and around it, a colour that says nothing, a value 3x - 2y.
  std::string table(int rows, uint32_t seed, bool header = true) {
    std::string text = header ? "x,y,colour,value,ring\n" : "";
    for (int row = 0; row < rows; ++row) {
      const auto next = [&] {
        seed = seed * 1664525u + 1013904223u;
        return static_cast<double>(seed >> 8) / (1 << 24);
      };
      const double x = 4 * next() - 2, y = 4 * next() - 2;
      text += std::to_string(x) + "," + (row % 9 == 4 ? "NA" : std::to_string(y)) +
              (next() < 0.5 ? ",red," : ",blue,") + std::to_string(3 * x - 2 * y) +
              (x * x + y * y < 2 ? ",in\n" : ",out\n");
    }
    return text;
  }
  Outcome train(const std::string& data, const std::string& run) {
    return weft({"train",    "--model",
                 "mlp",      "--data",
                 data,       "--run",
                 run,        "--batch",
                 "16",       "--threads",
                 "1",        "--quiet",
                 "--epochs", "30",
                 "--set",    "optimizer.name=adamw",
                 "--set",    "optimizer.learning_rate=0.01",
                 "--set",    "model.hidden=32"});
  }
  json json_of(const std::string& name) const { return json::parse(read_all(path(name))); }
};

TEST_F(TableRun, ClassifiesRows) {
  write_all(path("t.csv"), table(400, 1));
  const Outcome outcome = train("csv:t.csv?label=ring&ignore=value", "r");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json summary = json_of("r/summary.json");
  EXPECT_EQ(summary["task"], "classification");
  EXPECT_GT(summary["test_accuracy"], 0.8);
  EXPECT_GT(summary["rows_per_second"], 0);
  EXPECT_FALSE(summary.contains("images_per_second"));
  EXPECT_NE(outcome.out.find("rows/s"), std::string::npos) << outcome.out;
  EXPECT_EQ(json::parse(weft({"eval", "r", "--json"}).out)["accuracy"], summary["test_accuracy"]);
}

TEST_F(TableRun, OtherRowsAreEncodedAsInTraining) {
  write_all(path("t.csv"), table(400, 1));
  ASSERT_EQ(train("csv:t.csv?label=ring&ignore=value", "r").code, 0);
  write_all(path("other.csv"), table(150, 77));
  const json all = json::parse(weft({"eval", "r", "--data", "csv:other.csv", "--json"}).out);
  EXPECT_EQ(all["samples"], 150) << "all rows of other data";
  EXPECT_GT(all["accuracy"], 0.8);
  const json rows = json::parse(weft({"predict", "r", "other.csv", "--json"}).out)[0]["rows"];
  ASSERT_EQ(rows.size(), 150u);
  int right = 0;
  std::istringstream lines(read_all(path("other.csv")));
  std::string line;
  std::getline(lines, line);
  for (const json& row : rows) {
    std::getline(lines, line);
    const json& best = row["classes"][0];
    right += line.ends_with("," + best["name"].get<std::string>());
  }
  EXPECT_NEAR(right / 150.0, all["accuracy"], 1e-9);
}

TEST_F(TableRun, PredictsValuesInTheirOwnUnit) {
  write_all(path("t.csv"), table(400, 1));
  const Outcome outcome = train("csv:t.csv?label=value&ignore=ring&task=regression", "r");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json summary = json_of("r/summary.json");
  EXPECT_EQ(summary["task"], "regression");
  EXPECT_FALSE(summary.contains("test_accuracy"));
  EXPECT_GT(summary["test_r2"], 0.6);
  EXPECT_NE(outcome.out.find("test R2"), std::string::npos) << outcome.out;
  EXPECT_TRUE(fs::exists(path("r/checkpoints/best/model.safetensors"))) << "the lowest loss";

  write_all(path("other.csv"), table(150, 77));
  const json evaluation = json::parse(weft({"eval", "r", "--data", "csv:other.csv", "--json"}).out);
  const json rows = json::parse(weft({"predict", "r", "other.csv", "--json"}).out)[0]["rows"];
  std::istringstream lines(read_all(path("other.csv")));
  std::string cell, line;
  std::getline(lines, line);
  double errors = 0, sum = 0, squares = 0;
  for (const json& row : rows) {
    std::getline(lines, line);
    std::istringstream cells(line);
    for (int at = 0; at < 4; ++at) std::getline(cells, cell, ',');
    const double truth = std::stod(cell), error = row["value"].get<double>() - truth;
    errors += error * error;
    sum += truth;
    squares += truth * truth;
  }
  const double count = 150;
  EXPECT_NEAR(evaluation["rmse"], std::sqrt(errors / count), 1e-4);
  EXPECT_NEAR(evaluation["r2"], 1 - errors / (squares - sum * sum / count), 1e-4);
  std::string last;
  std::istringstream metrics(read_all(path("r/metrics.jsonl")));
  for (std::string record; std::getline(metrics, record);) last = record;
  EXPECT_TRUE(json::parse(last).contains("test_rmse")) << last;
  EXPECT_FALSE(json::parse(last).contains("train_accuracy")) << last;
}

TEST_F(TableRun, SeveralValuesArePredictedTogetherAndNamed) {
  std::string text = "x,y,price,rate\n";
  for (int row = 0; row < 200; ++row) {
    const double x = row % 20, y = row % 7;
    text += fmt::format("{},{},{},{}\n", x, y, 1000 + 10 * x, 0.001 * y);
  }
  write_all(path("t.csv"), text);
  ASSERT_EQ(train("csv:t.csv?label=rate,price&task=regression", "r").code, 0);
  const json evaluation = json::parse(weft({"eval", "r", "--json"}).out);
  ASSERT_EQ(evaluation["values"].size(), 2u);
  const json &rate = evaluation["values"][0], &price = evaluation["values"][1];
  EXPECT_EQ(rate["name"], "rate");
  EXPECT_EQ(price["name"], "price");
  const double rate_error = rate["rmse"], price_error = price["rmse"];
  EXPECT_LT(rate_error, 0.01) << "in its own unit";
  EXPECT_NEAR(evaluation["rmse"], std::sqrt((rate_error * rate_error + price_error * price_error) / 2), 1e-6);
  EXPECT_NEAR(evaluation["mae"], (rate["mae"].get<double>() + price["mae"].get<double>()) / 2, 1e-6);
  EXPECT_LE(price["mae"].get<double>(), price_error);
  EXPECT_NE(weft({"eval", "r"}).out.find("\nprice "), std::string::npos);

  write_all(path("rows.csv"), "y,x\n3,10\n5,2\n");
  const json rows = json::parse(weft({"predict", "r", "rows.csv", "--json"}).out)[0]["rows"];
  EXPECT_NEAR(rows[0]["values"]["price"].get<double>(), 1100, 5 * price_error + 20);
  EXPECT_NE(weft({"predict", "r", "rows.csv"}).out.find("row 1: rate = "), std::string::npos);
  EXPECT_EQ(weft({"predict", "r", "rows.csv", "--format", "csv"}).out.rfind("file,row,rate,price\nrows.csv,1,", 0), 0u);
}

TEST_F(TableRun, PredictionsKeepTheDigitsOfLargeValues) {
  std::string text = "x,time\n";
  for (int row = 0; row < 100; ++row) text += std::to_string(row) + "," + std::to_string(1700000123 + 100 * row) + "\n";
  write_all(path("t.csv"), text);
  ASSERT_EQ(train("csv:t.csv?task=regression", "r").code, 0);
  const json rows = json::parse(weft({"predict", "r", "t.csv", "--json"}).out)[0]["rows"];
  const Outcome printed = weft({"predict", "r", "t.csv"});
  std::istringstream lines(printed.out);
  std::string line;
  std::getline(lines, line);  // the file
  for (const json& row : rows) {
    std::getline(lines, line);
    EXPECT_NEAR(std::stod(line.substr(line.find(": ") + 2)), row["value"].get<double>(), 0.01) << line;
  }
}

TEST_F(TableRun, RowsAreNoImages) {
  write_all(path("t.csv"), table(100, 1));
  expect_error(weft({"train", "--model", "lenet5", "--data", "csv:t.csv", "--run", "r", "--batch", "16"}), 1,
               "[lenet5]");
  expect_error(weft({"train", "--model", "transformer_lm", "--data", "csv:t.csv", "--run", "r", "--batch", "16"}), 2,
               "reads tokens, 't' holds rows");
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(TableRun, ResumesOnTheSameRows) {
  write_all(path("t.csv"), table(200, 1));
  ASSERT_EQ(train("csv:t.csv?label=ring", "r").code, 0);
  fs::remove(path("r/summary.json"));
  write_all(path("t.csv"), table(200, 2));
  expect_error(weft({"train", "--resume", "r", "--quiet"}), 1, "changed since");
}

TEST_F(TableRun, ResumesOnTheSameLabels) {
  std::string text = table(200, 1);
  write_all(path("t.csv"), text);
  ASSERT_EQ(train("csv:t.csv?label=ring&split=0", "r").code, 0);
  fs::remove(path("r/summary.json"));
  const size_t in = text.find(",in\n");
  text.replace(in, 4, ",out\n");
  text.replace(text.find(",out\n", in + 5), 5, ",in\n");
  write_all(path("t.csv"), text);
  expect_error(weft({"train", "--resume", "r", "--quiet"}), 1, "other labels");
}

class TextRun : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::string text;
    for (int at = 0; at < 400; ++at) text += "abcdefgh ";
    write_all(path("t.txt"), text);
    outcome_ = weft({"train",
                     "--model",
                     "transformer_lm",
                     "--data",
                     "text:t.txt?length=16",
                     "--run",
                     "r",
                     "--batch",
                     "8",
                     "--threads",
                     "1",
                     "--quiet",
                     "--epochs",
                     "4",
                     "--set",
                     "optimizer.name=adamw",
                     "--set",
                     "optimizer.learning_rate=0.01",
                     "--set",
                     "model.width=32",
                     "--set",
                     "model.layers=1"});
  }
  Outcome outcome_;
};

TEST_F(TextRun, LearnsAndWritesOn) {
  ASSERT_EQ(outcome_.code, 0) << outcome_.err;
  const json summary = json::parse(read_all(path("r/summary.json")));
  EXPECT_EQ(summary["task"], "language_model");
  EXPECT_LT(summary["test_loss"], 0.3);
  EXPECT_NEAR(summary["test_perplexity"], std::exp(summary["test_loss"].get<double>()), 1e-9);
  EXPECT_GT(summary["tokens_per_second"], 0);
  EXPECT_NE(outcome_.out.find("nats per token"), std::string::npos) << outcome_.out;
  EXPECT_EQ(json::parse(weft({"eval", "r", "--json"}).out)["loss"], summary["test_loss"]);

  write_all(path("beginning.txt"), "gh abc");
  const Outcome written = weft({"predict", "r", "beginning.txt", "--length", "30", "--temperature", "0"});
  EXPECT_EQ(written.out, "gh abcdefgh abcdefgh abcdefgh abcdef\n") << written.err;
  const Outcome drawn = weft({"predict", "r", "beginning.txt", "--temperature", "1", "--seed", "3"});
  EXPECT_EQ(drawn.out, weft({"predict", "r", "beginning.txt", "--temperature", "1", "--seed", "3"}).out);
  const Outcome sharp = weft({"predict", "r", "beginning.txt", "--length", "30", "--temperature", "1", "--top-k", "1"});
  EXPECT_EQ(sharp.out, written.out) << sharp.err;  // far beyond the window of 16
  const json said = json::parse(weft({"predict", "r", "beginning.txt", "--top-p", "0.01", "--json"}).out);
  EXPECT_EQ(said[0]["text"].get<std::string>().substr(0, 5), "defgh");
  EXPECT_GT(said[0]["tokens_per_second"], 0);
  write_all(path("strange.txt"), "xyz");
  EXPECT_NE(weft({"predict", "r", "strange.txt"}).err.find("the character 'x'"), std::string::npos);
}

TEST_F(TextRun, TextIsForLanguageModels) {
  expect_error(weft({"train", "--model", "mlp", "--data", "text:t.txt", "--run", "q", "--batch", "4"}), 2,
               "[mlp] reads images or rows, 't' holds tokens");
}

}  // namespace
}  // namespace weft::cli_tests
