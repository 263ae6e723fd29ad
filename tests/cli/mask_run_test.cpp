// Masks, a class for each pixel, from the command line: train, evaluate, predict, data.
#include <nlohmann/json.hpp>

#include "tests/cli/pictures.h"
#include "tests/cli/program.h"
#include "weft/data/pictures/image.h"
#include "weft/data/pictures/mask.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;

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
}  // namespace weft::cli_tests
