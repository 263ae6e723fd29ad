// What `weft eval` says about classes, against counts of the logits that it writes.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "weft/tensor/safetensors.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;
using EvalClasses = ProgramTest;

/// Counted by hand from the logits and from the label file's bytes.
std::vector<std::vector<int64_t>> count_logits(const fs::path& logits_file, const std::string& label_bytes,
                                               size_t classes) {
  const SafetensorsFile file = read_safetensors(logits_file);
  const Tensor& logits = file.tensors.at("logits");
  std::vector<std::vector<int64_t>> counts(classes, std::vector<int64_t>(classes, 0));
  for (size_t sample = 0; sample < label_bytes.size(); ++sample) {
    const float* row = logits.data_as<float>() + sample * classes;
    ++counts[static_cast<size_t>(label_bytes[sample])][static_cast<size_t>(std::max_element(row, row + classes) - row)];
  }
  return counts;
}

TEST_F(EvalClasses, MatrixAndScoresAreThoseOfTheLogits) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "1", "--set", "optimizer.learning_rate=0.001"})).code, 0);
  const Outcome outcome = weft({"eval", "r", "--json", "--logits", "l.safetensors", "--confusion", "c.csv"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  const auto counts = count_logits(path("l.safetensors"), read_all(path("test-labels")).substr(8), 4);
  EXPECT_EQ(result["confusion_matrix"], json(counts));

  int64_t right = 0;
  double recalls = 0;
  std::string csv = "label,class 0,class 1,class 2,class 3\n";
  for (size_t label = 0; label < 4; ++label) {
    const json& scores = result["classes"][label];
    int64_t predicted = 0, samples = 0;
    csv += "class " + std::to_string(label);
    for (size_t other = 0; other < 4; ++other) {
      predicted += counts[other][label];
      samples += counts[label][other];
      csv += "," + std::to_string(counts[label][other]);
    }
    csv += "\n";
    const auto hits = static_cast<double>(counts[label][label]);
    EXPECT_EQ(scores["samples"], samples);
    EXPECT_EQ(scores["predicted"], predicted);
    EXPECT_DOUBLE_EQ(scores["recall"], hits / static_cast<double>(samples));
    const json precision = predicted > 0 ? json(hits / static_cast<double>(predicted)) : json();
    EXPECT_EQ(scores["precision"], precision);
    right += counts[label][label];
    recalls += hits / static_cast<double>(samples);
  }
  EXPECT_DOUBLE_EQ(result["accuracy"], static_cast<double>(right) / 72);
  EXPECT_LT(right, 72) << "something must be confused for this test to mean anything";
  EXPECT_DOUBLE_EQ(result["mean_recall"], recalls / 4);
  EXPECT_EQ(read_all(path("c.csv")), csv);
}

TEST_F(EvalClasses, TheTerminalGetsNamesAndTheWholeMatrixOfFewClasses) {
  std::string table = "a,b,kind\n";
  for (int row = 0; row < 120; ++row)
    table += std::to_string(row % 3) + "," + std::to_string(row % 5) + (row % 3 == 1 ? ",\"odd, one\"\n" : ",plain\n");
  write_all(path("t.csv"), table);
  ASSERT_EQ(weft({"train", "--model", "mlp", "--data", "csv:t.csv", "--run", "r", "--batch", "16", "--epochs", "20",
                  "--threads", "1", "--quiet", "--set", "model.hidden=16"})
                .code,
            0);
  const Outcome outcome = weft({"eval", "r", "--confusion", "c.csv"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"\nclass            samples  precision %  recall %    F1 %\n", "\nodd, one ",
                           "\nmean of classes", "\ntrue class, taken for:  [0]  [1]\n", "\n[1] "})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  EXPECT_EQ(read_all(path("c.csv")).substr(0, 6), "label,");
  EXPECT_NE(read_all(path("c.csv")).find("\"odd, one\""), std::string::npos);
}

TEST_F(EvalClasses, OfManyClassesTheTerminalGetsTheWorst) {
  write_idx("train", 400, 8, 25);
  write_idx("test", 100, 8, 25);
  ASSERT_EQ(weft(tiny_run("r")).code, 0);
  const std::string text = weft({"eval", "r"}).out;
  EXPECT_NE(text.find("\nthe 10 classes of lowest recall, of 25:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\ntrue class "), std::string::npos) << text;
  EXPECT_EQ(text.find("[24]"), std::string::npos) << text;
  EXPECT_EQ(json::parse(weft({"eval", "r", "--json"}).out)["confusion_matrix"].size(), 25u);
}

TEST_F(EvalClasses, ValuesAndTokensAreNotConfused) {
  write_all(path("t.csv"), "x,y\n1,2\n2,4\n3,6\n4,8\n5,9\n6,12\n7,13\n8,16\n");
  ASSERT_EQ(weft({"train", "--model", "mlp", "--data", "csv:t.csv?task=regression", "--run", "r", "--batch", "4",
                  "--epochs", "1", "--threads", "1", "--quiet"})
                .code,
            0);
  expect_error(weft({"eval", "r", "--confusion", "c.csv"}), 2, "--confusion counts classes");
  EXPECT_FALSE(json::parse(weft({"eval", "r", "--json"}).out).contains("classes"));
  EXPECT_FALSE(fs::exists(path("c.csv")));
}

TEST_F(EvalClasses, AMatrixThatCannotBeWrittenIsAnError) {
  ASSERT_EQ(weft(tiny_run("r", {"--epochs", "1"})).code, 0);
  const Outcome outcome = weft({"eval", "r", "--confusion", "none/c.csv"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("none/c.csv"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace weft::cli_tests
