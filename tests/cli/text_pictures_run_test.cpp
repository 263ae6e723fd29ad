// Pictures of text from the command line: train, evaluate, predict, data.
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/cli/pictures.h"
#include "tests/cli/program.h"
#include "weft/data/formats/text_images.h"
#include "weft/data/pictures/image.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;

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

}  // namespace
}  // namespace weft::cli_tests
