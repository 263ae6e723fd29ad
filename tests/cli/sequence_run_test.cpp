// Sequences, pictures of text and masks from the command line: train, evaluate, predict, data.
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/jpeg_for_tests.h"
#include "weft/data/formats/text_images.h"
#include "weft/data/image.h"
#include "weft/data/mask.h"

namespace weft::testing {
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
  EXPECT_GE(summary["best_test_accuracy"], summary["test_accuracy"]);
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
  const std::string summary = train_first_recipe("pairs:p.tsv?split=0.25", "192 pairs (9) for training, 64", "2");
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

/// Pixels that all differ, so that it matters how a picture is made smaller.
std::string noise(uint32_t seed, int count) {
  std::string pixels;
  for (int at = 0; at < count; ++at) {
    seed = seed * 1664525u + 1013904223u;
    pixels += static_cast<char>((seed >> 16) % 160);
  }
  return pixels;
}

std::string grey_jpeg(int width, int height, const std::string& pixels) {
  return jpeg_of(static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1,
                 reinterpret_cast<const uint8_t*>(pixels.data()));
}

/// A grey PGM.
std::string pgm(int width, int height, const std::string& pixels) {
  return "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n" + pixels;
}

class TextPictures : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    fs::create_directories(path("d"));
    std::string list;
    uint32_t seed = 1;
    for (int number = 0; number < 240; ++number) {
      seed = seed * 1664525u + 1013904223u;
      std::string text;
      for (uint32_t letter = 0; letter <= (seed >> 16) % 3; ++letter)
        text += static_cast<char>('a' + ((seed >> (20 + letter)) & 1));
      const std::string name = std::to_string(number) + ".pgm";
      write_all(path("d/" + name), drawing(text));
      list += name + "\t" + text + "\n";
    }
    write_all(path("d/list.tsv"), list);
  }
  /// An "a" is a block above, a "b" one below.
  static std::string drawing(const std::string& text) {
    const int width = 16 * static_cast<int>(text.size()) + 8;
    std::string pixels(static_cast<size_t>(width * 32), '\0');
    for (size_t letter = 0; letter < text.size(); ++letter)
      for (int y = 0; y < 12; ++y)
        for (int x = 0; x < 10; ++x)
          pixels[static_cast<size_t>((y + (text[letter] == 'a' ? 2 : 18)) * width + 6 + x) + 16 * letter] =
              static_cast<char>(220);
    return pgm(width, 32, pixels);
  }
};

class TextPictureRun : public TextPictures {
 protected:
  void SetUp() override {
    TextPictures::SetUp();
    outcome_ = weft({"train",
                     "--model",
                     "crnn",
                     "--data",
                     "lines:d/list.tsv?split=0.25",
                     "--run",
                     "r",
                     "--batch",
                     "12",
                     "--threads",
                     "1",
                     "--quiet",
                     "--epochs",
                     "8",
                     "--set",
                     "model.width=4",
                     "--set",
                     "model.rnn_width=16",
                     "--set",
                     "model.layers=1",
                     "--set",
                     "optimizer.name=adamw",
                     "--set",
                     "optimizer.learning_rate=0.01"});
  }
  Outcome outcome_;
};

TEST_F(TextPictureRun, ReadsAsManyRightAsEvaluationCounts) {
  ASSERT_EQ(outcome_.code, 0) << outcome_.err;
  const json summary = json::parse(read_all(path("r/summary.json")));
  EXPECT_EQ(summary["task"], "transcription");
  EXPECT_GT(summary["test_accuracy"], 0.5);
  EXPECT_LE(summary["train_accuracy"], 1);
  EXPECT_NE(weft({"eval", "r"}).out.find("of the texts right"), std::string::npos);
  const json all = json::parse(weft({"eval", "r", "--data", "lines:d/list.tsv?split=0", "--json"}).out);
  EXPECT_EQ(all["samples"], 240);
  std::vector<std::string> arguments{"predict", "r"};
  std::vector<std::string> texts;
  std::istringstream list(read_all(path("d/list.tsv")));
  for (std::string name, text; list >> name >> text; texts.push_back(text)) arguments.push_back("d/" + name);
  const Outcome predicted = weft(arguments);
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  std::istringstream lines(predicted.out);
  double right = 0;
  size_t at = 0;
  for (std::string line; std::getline(lines, line); ++at) right += line.ends_with("\t" + texts[at]) ? 1 : 0;
  EXPECT_EQ(at, 240u);
  EXPECT_NEAR(right / 240, all["accuracy"], 1e-9);
  const json one = json::parse(weft({"predict", "r", "d/0.pgm", "--json"}).out)[0];
  EXPECT_EQ(one["text"].get<std::string>().size(), one["certainty"].size());
}

TEST_F(TextPictureRun, JpegsAreReadAsInTraining) {
  const int width = 40, height = 32, times = 8;
  const std::string small = drawing("ab");
  std::string pixels = noise(3, times * width * times * height);
  for (int at = 0; at < times * width * times * height; ++at) {
    const auto from = static_cast<size_t>(at / (times * width) / times * width + at % (times * width) / times);
    const bool ink = small[small.size() - static_cast<size_t>(width * height) + from] != 0;
    const int grain = static_cast<uint8_t>(pixels[static_cast<size_t>(at)]) / 8;
    pixels[static_cast<size_t>(at)] = static_cast<char>((ink ? 210 : 0) + grain);
  }
  write_all(path("large.jpg"), grey_jpeg(times * width, times * height, pixels));
  data::write_png(path("sample.png"), data::fit_line(data::read_image(path("large.jpg"), 32), {1, 32, 56}));
  const json large = json::parse(weft({"predict", "r", "large.jpg", "--json"}).out)[0];
  const json sample = json::parse(weft({"predict", "r", "sample.png", "--json"}).out)[0];
  EXPECT_FALSE(large["text"].get<std::string>().empty());
  EXPECT_EQ(large["certainty"], sample["certainty"]);
}

TEST_F(TextPictures, OtherModelsDoNotFit) {
  expect_error(weft({"train", "--model", "autoencoder", "--data", "lines:d/list.tsv?length=1", "--run", "s", "--batch",
                     "12", "--quiet"}),
               2, "[autoencoder] gives values, and these data are learned by naming the text in a picture");
}

TEST_F(TextPictureRun, LogitsAreOfEachSample) {
  ASSERT_EQ(weft({"eval", "r", "--logits", "l.safetensors", "--batch", "7"}).code, 0);
  ASSERT_EQ(weft({"eval", "r", "--logits", "again.safetensors", "--batch", "60"}).code, 0);
  EXPECT_GT(fs::file_size(path("l.safetensors")), 60u * 13 * 3 * 4);
  const std::string first = read_all(path("l.safetensors")), second = read_all(path("again.safetensors"));
  ASSERT_EQ(first.size(), second.size());
  const size_t header = first.size() - 60u * 13 * 3 * 4;
  for (size_t at = header; at < first.size(); at += 4) {
    float a = 0, b = 0;
    std::memcpy(&a, first.data() + at, 4);
    std::memcpy(&b, second.data() + at, 4);
    ASSERT_NEAR(a, b, 1e-4) << "the order does not depend on the batch";
  }
}

TEST_F(TextPictures, WhatCannotBeLearnedOrDoesNothingIsSaid) {
  write_all(path("d/list.tsv"), read_all(path("d/list.tsv")) + "0.pgm\taaaaa\n");
  const Outcome outcome = weft({"train",
                                "--model",
                                "crnn",
                                "--data",
                                "lines:d/list.tsv?width=32&split=0",
                                "--run",
                                "s",
                                "--batch",
                                "12",
                                "--threads",
                                "1",
                                "--quiet",
                                "--epochs",
                                "1",
                                "--set",
                                "model.width=2",
                                "--set",
                                "model.rnn_width=2",
                                "--set",
                                "model.layers=1",
                                "--set",
                                "loss.label_smoothing=0.1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("cannot be learned: with a blank between equal letters the longest takes 9 steps, and the "
                             "network has 7"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("loss.label_smoothing = 0.1 with 'crnn', which has a loss of its own, has no effect"),
            std::string::npos)
      << outcome.err;
}

TEST_F(TextPictures, InitWritesARecipe) {
  const std::string summary = train_first_recipe("lines:d/list.tsv", " pictures of text (1,32,56) for training", "1");
  EXPECT_EQ(json::parse(summary)["model"], "crnn");
}

TEST_F(TextPictures, DataShowsTextsAndASheet) {
  const Outcome shown = weft({"data", "lines:d/list.tsv", "--contact-sheet", "s.png"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("1 to 3 characters"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("vocabulary  2 characters: ab"), std::string::npos) << shown.out;
  EXPECT_TRUE(fs::exists(path("s.png")));
}

TEST_F(TextPictures, LengthIsWhatTheDataSay) {
  expect_error(weft({"train", "--model", "crnn", "--data", "lines:d/list.tsv?width=32&length=3", "--run", "s",
                     "--batch", "12", "--set", "model.length=5"}),
               2, "option length wants 3, as the data have it");
}

/// Bright squares on a dark ground, which are class 1; the first rows do not count.
class MaskRun : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    fs::create_directories(path("d/images"));
    fs::create_directories(path("d/masks"));
    uint32_t seed = 1;
    for (int number = 0; number < 40; ++number) {
      std::string picture(32 * 32, '\x20');
      data::Image mask{1, 32, 32, std::vector<uint8_t>(32 * 32, 0)};
      std::fill_n(mask.pixels.begin(), 32 * 2, uint8_t{255});
      seed = seed * 1664525u + 1013904223u;
      for (uint32_t y = 2; y < 16; ++y)
        for (uint32_t x = 0; x < 14; ++x) {
          const size_t at = ((seed >> 16) % 16 + y) * 32 + (seed >> 24) % 18 + x;
          picture[at] = '\x7f';
          mask.pixels[at] = 1;
        }
      const std::string name = std::to_string(number);
      write_all(path("d/images/" + name + ".pgm"), pgm(32, 32, picture));
      data::write_png(path("d/masks/" + name + ".png"), mask);
    }
    outcome_ = weft({"train",
                     "--model",
                     "unet_small",
                     "--data",
                     "masks:d?height=32&width=32&channels=1",
                     "--run",
                     "r",
                     "--batch",
                     "8",
                     "--threads",
                     "1",
                     "--quiet",
                     "--epochs",
                     "6",
                     "--set",
                     "model.width=4",
                     "--set",
                     "model.depth=2",
                     "--set",
                     "optimizer.name=adamw",
                     "--set",
                     "optimizer.learning_rate=0.02",
                     "--set",
                     "augment.flip=random"});
  }
  Outcome outcome_;
};

TEST_F(MaskRun, LearnsEvaluatesAndWritesMasks) {
  ASSERT_EQ(outcome_.code, 0) << outcome_.err;
  const json summary = json::parse(read_all(path("r/summary.json")));
  EXPECT_EQ(summary["task"], "segmentation");
  EXPECT_GT(summary["test_accuracy"], 0.95);
  EXPECT_GT(summary["train_accuracy"], 0.5);
  EXPECT_LE(summary["train_accuracy"], 1);
  EXPECT_GT(summary["test_mean_iou"], 0.8);
  EXPECT_LT(summary["test_mean_iou"], summary["test_accuracy"]);

  // What eval reports beside what the written masks say.
  const json all = json::parse(weft({"eval", "r", "--data", "masks:d?split=0", "--json"}).out);
  EXPECT_EQ(all["samples"], 40);
  std::vector<std::string> arguments{"predict", "r", "--masks", "out", "--json"};
  for (int number = 0; number < 40; ++number) arguments.push_back("d/images/" + std::to_string(number) + ".pgm");
  const Outcome predicted = weft(arguments);
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  double right = 0, counted = 0, both[2] = {}, either[2] = {};
  for (int number = 0; number < 40; ++number) {
    const std::string name = std::to_string(number) + ".png";
    const data::Image mask = data::read_mask(path("out/" + name)), truth = data::read_mask(path("d/masks/" + name));
    ASSERT_EQ(mask.pixels.size(), truth.pixels.size());
    for (size_t at = 0; at < truth.pixels.size(); ++at) {
      if (truth.pixels[at] == 255) continue;
      ++counted;
      right += mask.pixels[at] == truth.pixels[at];
      for (uint8_t one = 0; one < 2; ++one) {
        both[one] += mask.pixels[at] == one && truth.pixels[at] == one;
        either[one] += mask.pixels[at] == one || truth.pixels[at] == one;
      }
    }
  }
  EXPECT_NEAR(all["accuracy"], right / counted, 1e-5);
  EXPECT_NEAR(all["mean_iou"], (both[0] / either[0] + both[1] / either[1]) / 2, 1e-5);
  const json first = json::parse(predicted.out)[0];
  EXPECT_NEAR(first["classes"][0]["share"].get<double>() + first["classes"][1]["share"].get<double>(), 1, 1e-9);
}

TEST_F(MaskRun, InitWritesARecipe) {
  const std::string summary = train_first_recipe("masks:d?height=32&width=32&channels=1",
                                                 " pictures with masks (1,32,32) of 2 classes for training", "2");
  EXPECT_EQ(json::parse(summary)["model"], "unet_small");
}

TEST_F(MaskRun, PixelsAreCountedPerClass) {
  const json result = json::parse(weft({"eval", "r", "--json"}).out);
  const json& matrix = result["confusion_matrix"];
  const auto cell = [&](size_t label, size_t predicted) { return matrix[label][predicted].get<double>(); };
  const double all = cell(0, 0) + cell(0, 1) + cell(1, 0) + cell(1, 1);
  EXPECT_EQ(all, result["samples"].get<double>() * 32 * 30) << "the two rows that do not count are left out";
  EXPECT_NEAR(result["accuracy"], (cell(0, 0) + cell(1, 1)) / all, 1e-6);
  const double first = cell(0, 0) / (cell(0, 0) + cell(0, 1) + cell(1, 0));
  const double second = cell(1, 1) / (cell(1, 1) + cell(0, 1) + cell(1, 0));
  EXPECT_NEAR(result["mean_iou"], (first + second) / 2, 1e-6);
}

TEST_F(MaskRun, DataShowsShares) {
  const Outcome shown = weft({"data", "masks:d?split=0", "--contact-sheet", "s.png"});
  EXPECT_NE(shown.out.find("not counted 6.2 %"), std::string::npos) << shown.out;
  EXPECT_TRUE(fs::exists(path("s.png")));
}

TEST_F(MaskRun, JpegsAreReadAsInTraining) {
  fs::create_directories(path("j/images"));
  fs::create_directories(path("j/masks"));
  write_all(path("j/images/noise.jpg"), grey_jpeg(256, 256, noise(7, 256 * 256)));
  data::write_png(path("j/masks/noise.png"), {1, 32, 32, std::vector<uint8_t>(32 * 32, 0)});
  const json measured = json::parse(weft({"eval", "r", "--data", "masks:j?split=0", "--json"}).out);
  const json shares = json::parse(weft({"predict", "r", "j/images/noise.jpg", "--json"}).out)[0];
  for (size_t at = 0; at < 2; ++at)
    EXPECT_EQ(measured["classes"][at]["predicted"].get<double>(),
              shares["classes"][at]["share"].get<double>() * 32 * 32);
}

TEST_F(MaskRun, PicturesAndMasksOfOthersAreNotReplaced) {
  write_all(path("a.png"), read_all(path("d/masks/0.png")));
  fs::create_directories(path("b"));
  write_all(path("b/a.png"), read_all(path("d/masks/1.png")));
  fs::create_directory_symlink(path("b"), path("link"));
  for (const char* folder : {".", "b/..", "link/.."}) {
    expect_error(weft({"predict", "r", "a.png", "--masks", folder}), 2, "a mask would replace the picture 'a.png'");
    EXPECT_EQ(read_all(path("a.png")), read_all(path("d/masks/0.png")));
  }
  expect_error(weft({"predict", "r", "d/images/0.pgm", "b/a.png", "--masks", "link"}), 2,
               "a mask would replace the picture 'b/a.png'");
  expect_error(weft({"predict", "r", "a.png", "b/a.png", "--masks", "out"}), 2,
               "'a.png' and 'b/a.png' would have one mask, 'out/a.png'");
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(MaskRun, OtherModelsDoNotFit) {
  expect_error(weft({"train", "--model", "autoencoder", "--data", "masks:d?height=32&width=32", "--run", "s", "--batch",
                     "8", "--quiet"}),
               2, "[autoencoder] gives values, and these data are learned by naming the class of each pixel");
}

TEST_F(MaskRun, OnlyMasksAreWrittenAsSuch) {
  ASSERT_EQ(weft(tiny_run("images")).code, 0);
  expect_error(weft({"predict", "images", "--masks", "out", "d/images/0.pgm"}), 2,
               "--masks is for models that name the class of each pixel");
}

}  // namespace
}  // namespace weft::testing
