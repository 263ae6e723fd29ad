// Sequences from the command line - pairs, and texts with a class each: train, evaluate, predict, data.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;

class PairRun : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::string text;
    for (int number = 0; number < 256; ++number) {  // words of four letters and the same without its first letter
      std::string word;
      for (int digit = 0; digit < 4; ++digit) word += static_cast<char>('a' + ((number >> (2 * digit)) & 3));
      text += word + "\t" + (number % 4 == 0 ? "X" : "") + word.substr(1) + "\n";
    }
    write_all(path("p.tsv"), text);
    outcome_ = weft({"train",
                     "--model",
                     "seq2seq_attention",
                     "--data",
                     "pairs:p.tsv?split=0.25",
                     "--run",
                     "r",
                     "--batch",
                     "16",
                     "--threads",
                     "1",
                     "--quiet",
                     "--epochs",
                     "2",
                     "--set",
                     "model.width=32",
                     "--set",
                     "optimizer.name=adamw",
                     "--set",
                     "optimizer.learning_rate=0.01"});
  }
  json json_of(const std::string& name) const { return json::parse(read_all(path(name))); }
  Outcome outcome_;
};

TEST_F(PairRun, ReportsWholeSequencesAndTokens) {
  ASSERT_EQ(outcome_.code, 0) << outcome_.err;
  const json summary = json_of("r/summary.json");
  EXPECT_EQ(summary["task"], "translation");
  EXPECT_GT(summary["test_token_accuracy"], 0.5);
  EXPECT_GT(summary["test_accuracy"], 0.05);
  EXPECT_LT(summary["test_accuracy"], summary["test_token_accuracy"]);
  EXPECT_EQ(summary["time_to_best"]["metric"], "test_accuracy");
  EXPECT_NE(outcome_.out.find("by token"), std::string::npos) << outcome_.out;
  const json evaluation = json::parse(weft({"eval", "r", "--json"}).out);
  EXPECT_EQ(evaluation["accuracy"], summary["test_accuracy"]);
  EXPECT_EQ(evaluation["token_accuracy"], summary["test_token_accuracy"]);
  EXPECT_NE(weft({"eval", "r"}).out.find("of the sequences right"), std::string::npos);
  std::string last;
  std::istringstream metrics(read_all(path("r/metrics.jsonl")));
  for (std::string record; std::getline(metrics, record);) last = record;
  EXPECT_EQ(json::parse(last)["test_token_accuracy"], summary["test_token_accuracy"]);
}

// What evaluation counts with the true tokens given is what greedy decoding gets right.
TEST_F(PairRun, PredictsAsManyRightAsEvaluationCounts) {
  const json evaluation = json::parse(weft({"eval", "r", "--data", "pairs:p.tsv?split=0", "--json"}).out);
  EXPECT_EQ(evaluation["samples"], 256);
  const Outcome predicted = weft({"predict", "r", "p.tsv"});
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  std::istringstream lines(predicted.out), truth(read_all(path("p.tsv")));
  double right = 0;
  for (std::string line, wanted; std::getline(lines, line) && std::getline(truth, wanted);) right += line == wanted;
  EXPECT_NEAR(right / 256, evaluation["accuracy"], 1e-9);
  EXPECT_GT(right, 0);
  const json as_json = json::parse(weft({"predict", "r", "p.tsv", "--json"}).out);
  EXPECT_EQ(as_json[0]["lines"].size(), 256u);
  EXPECT_EQ(as_json[0]["lines"][3]["source"], "daaa");
}

TEST_F(PairRun, LinesThatCannotBeTranslated) {
  write_all(path("long.txt"), "abcab\nabca\n\xff\nbbbb\n");
  const Outcome some = weft({"predict", "r", "long.txt"});
  EXPECT_EQ(some.code, 1);
  EXPECT_NE(some.err.find("'long.txt':1: 5 characters, the model reads up to 4"), std::string::npos) << some.err;
  EXPECT_NE(some.err.find("'long.txt:3' is no UTF-8 text"), std::string::npos) << some.err;
  EXPECT_EQ(some.out.substr(0, 5), "abca\t") << "the other lines follow";
  EXPECT_NE(some.out.find("\nbbbb\t"), std::string::npos) << some.out;
  const json both = json::parse(weft({"predict", "r", "long.txt", "--json"}).out)[0]["lines"];
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1]["line"], 4);
  write_all(path("other.txt"), "abcz\n");
  expect_error(weft({"predict", "r", "other.txt"}), 1, "'other.txt':1: the character 'z' is not among the");
  write_all(path("empty.txt"), "\n");
  expect_error(weft({"predict", "r", "empty.txt"}), 1, "'empty.txt' holds no text; want one on each line");
}

TEST_F(PairRun, FilesAreReadAsInTraining) {
  write_all(path("plain.txt"), "abca\n");
  write_all(path("marked.txt"),
            "\xef\xbb\xbf"
            "abca\n");
  const std::string translated = weft({"predict", "r", "plain.txt"}).out;
  EXPECT_EQ(weft({"predict", "r", "marked.txt"}).out, translated);
}

TEST_F(PairRun, DataThatASpecNamesAreForClassesAndValues) {
  expect_error(weft({"predict", "r", "pairs:p.tsv"}), 2,
               "'pairs:p.tsv' names data, and a model for translation predicts files");
}

TEST_F(PairRun, SourceIsWhatTheDataSay) {
  expect_error(weft({"train", "--model", "seq2seq_attention", "--data", "pairs:p.tsv", "--run", "s", "--set",
                     "model.source=3", "--batch", "16"}),
               2, "option source wants 4, as the data have it; leave it away, got '3'");
}

TEST_F(PairRun, OtherModelsDoNotFit) {
  expect_error(weft({"train", "--model", "transformer_lm", "--data", "pairs:p.tsv", "--run", "s", "--batch", "16"}), 2,
               "[transformer_lm] predicts");
}

TEST_F(PairRun, InitWritesARecipe) {
  const std::string summary =
      train_first_recipe("pairs:p.tsv?split=0.25", "173 pairs (9) for training, 19 for validation, 64", "2");
  EXPECT_EQ(json::parse(summary)["model"], "seq2seq_attention");
}

TEST_F(PairRun, DataShowsLengthsAndVocabulary) {
  const Outcome shown = weft({"data", "pairs:p.tsv"});
  EXPECT_NE(shown.out.find("vocabulary  5 characters: Xabcd"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("4 to 4 characters"), std::string::npos) << shown.out;
  const json root = json::parse(weft({"data", "pairs:p.tsv", "--json"}).out);
  EXPECT_EQ(root["facts"]["sources"], "4 to 4 characters, 99 % up to 4, mean 4.0");
}

class LabelledRun : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::string text;
    uint32_t seed = 1;
    for (int line = 0; line < 200; ++line) {
      seed = seed * 1664525u + 1013904223u;
      const bool good = (seed >> 16) % 2 == 0;
      text += std::string(good ? "yes" : "no") + "\tit is " + ((seed >> 20) % 2 == 0 ? "so very " : "") +
              (good ? "good" : "bad") + " today\n";
    }
    write_all(path("l.tsv"), text);
    outcome_ = weft({"train",
                     "--model",
                     "lstm_classifier",
                     "--data",
                     "labelled:l.tsv?unit=word",
                     "--run",
                     "r",
                     "--batch",
                     "16",
                     "--threads",
                     "1",
                     "--quiet",
                     "--epochs",
                     "6",
                     "--set",
                     "model.width=16",
                     "--set",
                     "optimizer.name=adamw",
                     "--set",
                     "optimizer.learning_rate=0.02"});
  }
  Outcome outcome_;
};

TEST_F(LabelledRun, LearnsEvaluatesAndPredicts) {
  ASSERT_EQ(outcome_.code, 0) << outcome_.err;
  const json summary = json::parse(read_all(path("r/summary.json")));
  EXPECT_GT(summary["test_accuracy"], 0.95);
  EXPECT_EQ(json::parse(weft({"eval", "r", "--json"}).out)["accuracy"], summary["test_accuracy"]);
  write_all(path("new.txt"), "it is good indeed\n\nyes\tso bad\n");
  const json predicted = json::parse(weft({"predict", "r", "new.txt", "--json"}).out)[0]["lines"];
  ASSERT_EQ(predicted.size(), 2u);
  EXPECT_EQ(predicted[0]["classes"][0]["name"], "yes");
  EXPECT_EQ(predicted[1]["line"], 3);
  EXPECT_EQ(predicted[1]["text"], "so bad") << "of a labelled line the text";
  EXPECT_EQ(predicted[1]["classes"][0]["name"], "no");
  EXPECT_NE(weft({"predict", "r", "new.txt"}).out.find("line 1: yes "), std::string::npos);
}

TEST_F(LabelledRun, PredictsDataThatASpecNames) {
  const json rows = json::parse(weft({"predict", "r", "labelled:l.tsv", "--json"}).out)[0]["rows"];
  const json lines = json::parse(weft({"predict", "r", "l.tsv", "--json"}).out)[0]["lines"];
  ASSERT_EQ(rows.size(), 200u);
  for (size_t at = 0; at < rows.size(); ++at)
    EXPECT_EQ(rows[at]["classes"][0]["name"], lines[at]["classes"][0]["name"]) << at;
}

TEST_F(LabelledRun, InitWritesARecipe) {
  const std::string summary =
      train_first_recipe("labelled:l.tsv?unit=word", " texts (6) of 2 classes for training", "8");
  EXPECT_EQ(json::parse(summary)["model"], "lstm_classifier");
  EXPECT_GT(json::parse(summary)["test_accuracy"], 0.9);
}

TEST_F(LabelledRun, DataShowsClassesAndLengths) {
  const Outcome shown = weft({"data", "labelled:l.tsv?unit=word"});
  EXPECT_NE(shown.out.find("4 to 6 words"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("vocabulary  7 words"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("yes"), std::string::npos) << shown.out;
}

TEST_F(LabelledRun, VocabularyIsWhatTheDataSay) {
  expect_error(weft({"train", "--model", "lstm_classifier", "--data", "labelled:l.tsv", "--run", "s", "--batch", "16",
                     "--set", "model.vocabulary=9"}),
               2, "option vocabulary wants");
}

}  // namespace
}  // namespace weft::cli_tests
