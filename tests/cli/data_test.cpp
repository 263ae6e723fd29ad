// weft data, and runs on folders of pictures.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "weft/data/load/loader.h"
#include "weft/data/open_dataset.h"
#include "weft/data/pictures/image.h"
#include "weft/program/run_data.h"
#include "weft/tensor/npy.h"

namespace weft::cli_tests {
namespace {

using nlohmann::json;

class Pictures : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    for (int at = 0; at < 20; ++at) {
      add("pictures/dark/" + std::to_string(at) + ".png", static_cast<uint8_t>(20 + at));
      add("pictures/light/" + std::to_string(at) + ".png", static_cast<uint8_t>(200 + at));
    }
  }
  void add(const std::string& name, uint8_t value) {
    fs::create_directories(path(name).parent_path());
    data::write_png(path(name), {3, 10, 12, std::vector<uint8_t>(360, value)});
  }
  Outcome train(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"train", "--model",  "mlp",     "--data", "images:pictures?size=8",
                                          "--run", "r",        "--batch", "8",      "--threads",
                                          "1",     "--epochs", "4",       "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return weft(arguments);
  }
};

TEST_F(Pictures, AreLearnedAndPredicted) {
  write_all(path("pictures/dark/notes.txt"), "x");
  const Outcome outcome = train();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err,
            "weft: 'pictures': left out 1 file that is no JPEG or PNG image, such as "
            "'pictures/dark/notes.txt'\n");
  EXPECT_EQ(json::parse(read_all(path("r/summary.json")))["test_accuracy"], 1.0);
  const json prediction = json::parse(weft({"predict", "r", "pictures/light/3.png", "--json"}).out);
  EXPECT_EQ(prediction[0]["classes"][0]["name"], "light");
  add("others/light/1.png", 230);
  EXPECT_EQ(json::parse(weft({"eval", "r", "--data", "images:others", "--json"}).out)["accuracy"], 1.0);
}

TEST_F(Pictures, OfAFolderAndAPatternAreAllPredicted) {
  ASSERT_EQ(train().code, 0);
  const json of_folder = json::parse(weft({"predict", "r", "pictures/light", "--json"}).out);
  const json of_pattern = json::parse(weft({"predict", "r", "pictures/light/*.png", "--json"}).out);
  EXPECT_EQ(of_folder, of_pattern);
  EXPECT_EQ(of_folder.size(), 20u);
  EXPECT_EQ(of_folder[0]["file"], "pictures/light/0.png");
  expect_error(weft({"predict", "r", "pictures/*.tif"}), 2, "no file matches 'pictures/*.tif'");
}

TEST_F(Pictures, ArePredictedAsCsvAndAsLines) {
  ASSERT_EQ(train().code, 0);
  write_all(path("pictures/light/broken.png"), "nothing");
  const Outcome outcome = weft(
      {"predict", "r", "pictures/light/1.png", "pictures/light/broken.png", "pictures/dark/1.png", "--format", "csv"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("1 of 3 files could not be predicted"), std::string::npos) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string header, light, dark;
  std::getline(lines, header);
  std::getline(lines, light);
  std::getline(lines, dark);
  EXPECT_EQ(header, "file,class,prediction,probability");
  EXPECT_TRUE(light.starts_with("pictures/light/1.png,1,light,0.")) << light;
  EXPECT_TRUE(dark.starts_with("pictures/dark/1.png,0,dark,0.")) << dark;
  const Outcome as_lines = weft({"predict", "r", "pictures/dark/1.png", "--format", "jsonl"});
  EXPECT_EQ(json::parse(as_lines.out)["classes"][0]["name"], "dark");
}

TEST_F(Pictures, AreAugmentedAndMixedAlikeInEveryRun) {
  const std::vector<std::string> more = {"--set", "augment.resized_crop=0.5", "--set", "augment.mixup=0.2",
                                         "--set", "augment.cutmix=1",         "--set", "loss.label_smoothing=0.1"};
  ASSERT_EQ(train(more).code, 0);
  const std::string first = read_all(path("r/checkpoints/best/model.safetensors"));
  fs::remove_all(path("r"));
  std::vector<std::string> with_workers = more;
  with_workers.insert(with_workers.end(), {"--set", "loader.workers=3", "--set", "loader.prefetch=5"});
  ASSERT_EQ(train(with_workers).code, 0);
  EXPECT_EQ(read_all(path("r/checkpoints/best/model.safetensors")), first);
  EXPECT_EQ(json::parse(read_all(path("r/summary.json")))["test_accuracy"], 1.0);
}

TEST_F(Pictures, ADamagedOneIsNamedInTraining) {
  write_all(path("pictures/dark/7.png"), "\x89PNG and nothing");
  const Outcome outcome = train();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("pictures/dark/7.png' is a damaged PNG"), std::string::npos) << outcome.err;
}

TEST_F(Pictures, DataSaysWhatThereIs) {
  const Outcome outcome = weft({"data", "images:pictures?size=8", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json root = json::parse(outcome.out);
  EXPECT_EQ(root["train_samples"], 32);
  EXPECT_EQ(root["test_samples"], 8);
  EXPECT_EQ(root["sample_shape"], (std::vector<int>{3, 8, 8}));
  EXPECT_EQ(root["class_counts"][1], (json{{"name", "light"}, {"train", 16}, {"test", 4}}));
  EXPECT_NEAR(root["mean"][0], 119.5 / 255, 0.01);
  EXPECT_NE(weft({"data", "images:pictures?size=8"}).out.find("light        16        4"), std::string::npos);
}

TEST_F(Pictures, DataNamesEveryDamagedPicture) {
  write_all(path("pictures/dark/7.png"), "\x89PNG and nothing");
  write_all(path("pictures/light/8.png"), "");
  const Outcome outcome = weft({"data", "images:pictures?size=8"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("dark/7.png"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("light/8.png"), std::string::npos) << outcome.err;
}

/// A sheet of images of 8 x 8 pixels, which are squares of 10 there, each with a name of 14 rows below it.
class Sheet {
 public:
  explicit Sheet(const fs::path& path) : image_(data::read_image(path)) {}
  int64_t rows() const { return (image_.height - 4) / 98; }
  int64_t columns() const { return (image_.width - 4) / 84; }
  int pixel(int64_t row, int64_t column, int64_t y, int64_t x, int64_t channel = 0) const {
    return at(channel, 4 + 98 * row + 10 * y + 5, 4 + 84 * column + 10 * x + 5);
  }
  /// Dark pixels below an image.
  int ink(int64_t row, int64_t column) const {
    int count = 0;
    for (int64_t y = 84; y < 98; ++y)
      for (int64_t x = 0; x < 80; ++x) count += at(0, 98 * row + y, 4 + 84 * column + x) < 128 ? 1 : 0;
    return count;
  }
  const data::Image& image() const { return image_; }

 private:
  int at(int64_t channel, int64_t y, int64_t x) const {
    return image_.pixels[static_cast<size_t>((channel * image_.height + y) * image_.width + x)];
  }
  data::Image image_;
};

TEST_F(Pictures, ContactSheetHasARowPerClassAndNamesBelowTheImages) {
  ASSERT_EQ(weft({"data", "images:pictures?size=8", "--contact-sheet", "sheet.png"}).code, 0);
  const Sheet sheet(path("sheet.png"));
  EXPECT_EQ(sheet.image().height, 4 + 2 * 98);
  EXPECT_EQ(sheet.image().width, 4 + 10 * 84);
  EXPECT_LT(sheet.pixel(0, 0, 0, 0), 60) << "dark";
  EXPECT_GT(sheet.pixel(1, 0, 0, 0), 190) << "light";
  EXPECT_EQ(sheet.image().pixels[0], 255) << "between images";
  EXPECT_GT(sheet.ink(0, 0), 20);
  EXPECT_NE(sheet.ink(0, 0), sheet.ink(1, 0)) << "different names";
  EXPECT_EQ(sheet.ink(0, 0), sheet.ink(0, 9)) << "of the same class";
}

TEST_F(Pictures, SamplesForOtherProgramsAreThoseThatANetworkGets) {
  const Outcome outcome = weft({"data", "images:pictures?size=8&split=0.5", "--samples", "out", "--count", "7"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Tensor samples = read_npy(path("out/test_samples.npy")), targets = read_npy(path("out/test_targets.npy"));
  EXPECT_EQ(samples.type().dtype, DType::f32);
  EXPECT_EQ(samples.shape(), (Shape{7, 3, 8, 8}));
  EXPECT_EQ(targets.shape(), (Shape{7}));
  EXPECT_EQ(read_npy(path("out/train_samples.npy")).shape()[0], 7);
  const auto train =
      data::open_dataset("images:" + path("pictures").string() + "?size=8&split=0.5", data::Split::train);
  const auto test = data::open_dataset("images:" + path("pictures").string() + "?size=8&split=0.5", data::Split::test);
  const data::Loader loader(*test, {.batch = 20, .workers = 0, .statistics = data::channel_statistics(*train)});
  const data::Batch batch = loader.load_batch(0, 0);
  EXPECT_EQ(0, std::memcmp(batch.samples.data(), samples.data(), static_cast<size_t>(samples.bytes())));
  EXPECT_EQ(0, std::memcmp(batch.targets.data(), targets.data(), static_cast<size_t>(targets.bytes())));
}

TEST_F(Pictures, ACountWithoutSamplesIsAnError) {
  expect_error(weft({"data", "images:pictures", "--count", "7"}), 2, "--samples DIR");
}

TEST_F(Pictures, ContactSheetShowsAugmentation) {
  ASSERT_EQ(weft({"data", "images:pictures?size=8", "--contact-sheet", "sheet.png", "--augment", "--set",
                  "augment.brightness=0.9"})
                .code,
            0);
  const Sheet sheet(path("sheet.png"));
  EXPECT_NE(sheet.pixel(0, 0, 3, 3), sheet.pixel(0, 1, 3, 3)) << "one picture in two epochs";
}

/// What a batch of training has, set back to pixels.
TEST_F(Pictures, ContactSheetHasThePixelsOfTrainingBatches) {
  ASSERT_EQ(weft({"data", "images:pictures?size=8&split=0", "--contact-sheet", "sheet.png", "--augment", "--seed", "3",
                  "--set", "augment.rotate=40", "--set", "augment.erasing=1"})
                .code,
            0);
  const auto dataset =
      data::open_dataset("images:" + path("pictures").string() + "?size=8&split=0", data::Split::train);
  spec::RunSpec spec;
  spec.seed = 3;
  spec.batch = 4;
  spec.augment.rotate = 40;
  spec.augment.erasing = 1;
  const spec::DataDescription description{dataset->info(), data::channel_statistics(*dataset, 1), dataset->size()};
  data::LoaderOptions options = program::training_loader_options(spec, description);
  options.shuffle = false;
  const data::Loader loader(*dataset, options);
  const Sheet sheet(path("sheet.png"));
  ASSERT_EQ(dataset->label(0), 0) << "the first sample is the one that the first row shows";
  int fills = 0;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const data::Batch batch = loader.load_batch(epoch, 0);
    const float* value = batch.samples.data_as<float>();
    for (int64_t channel = 0; channel < 3; ++channel)
      for (int64_t y = 0; y < 8; ++y)
        for (int64_t x = 0; x < 8; ++x, ++value) {
          const auto at = static_cast<size_t>(channel);
          const float pixel = *value * description.statistics.deviation[at] + description.statistics.mean[at];
          EXPECT_EQ(sheet.pixel(0, epoch, y, x, channel), std::lround(255 * pixel)) << epoch << " " << y << " " << x;
          fills += *value == 0 ? 1 : 0;
        }
  }
  EXPECT_GT(fills, 0) << "something was erased: the mean of the data stands there";
}

TEST_F(Pictures, DataRefusesWhatDoesNothing) {
  expect_error(weft({"data", "images:pictures", "--augment"}), 2, "--contact-sheet");
  expect_error(weft({"data", "images:pictures", "--set", "augment.flip=random"}), 2, "--augment");
  expect_error(
      weft({"data", "images:pictures", "--contact-sheet", "a.png", "--augment", "--set", "optimizer.name=sgd"}), 2,
      "only keys of [augment]");
  write_all(path("t.csv"), "x,c\n1,a\n2,b\n");
  EXPECT_NE(weft({"data", "csv:t.csv?split=0", "--contact-sheet", "a.png"}).err.find("'t' holds rows"),
            std::string::npos);
}

TEST_F(Pictures, ASheetOfSingleImagesShowsNoMixing) {
  expect_error(
      weft({"data", "images:pictures?size=8", "--contact-sheet", "a.png", "--augment", "--set", "augment.mixup=1"}), 2,
      "augment.mixup and augment.cutmix mix the images of a batch");
}

TEST_F(Pictures, OfTheRunAreMeasuredWhereTheyWereNotTrainedOn) {
  ASSERT_EQ(train().code, 0);
  fs::create_directory_symlink(path("pictures"), path("link"));
  for (const std::string data : {"images:pictures", "images:./pictures?cache=0", "images:link"}) {
    const json result = json::parse(weft({"eval", "r", "--data", data, "--json"}).out);
    EXPECT_EQ(result["samples"], 8) << data;
    EXPECT_EQ(result["split"], "test") << data;
  }
  const json parts = json::parse(weft({"eval", "r", "--data", "images:pictures?split=0", "--json"}).out);
  EXPECT_EQ(parts["samples"], 40);
  EXPECT_EQ(parts["split"], "training");
  EXPECT_NE(weft({"eval", "r"}).out.find("on 8 samples (the test split) of images:"), std::string::npos);
  add("others/light/1.png", 230);
  EXPECT_EQ(json::parse(weft({"eval", "r", "--data", "images:others", "--json"}).out)["split"], "all");
}

TEST_F(Pictures, MixingIsForClassesOfImages) {
  write_all(path("t.csv"), "x,c\n1,a\n2,b\n");
  expect_error(weft({"train", "--model", "mlp", "--data", "csv:t.csv?split=0", "--batch", "1", "--run", "r", "--set",
                     "augment.mixup=1"}),
               2, "augment.mixup and augment.cutmix are for images in classes, 't' holds rows");
}

TEST_F(Pictures, DataSaysWhatTablesAndTextsHold) {
  write_all(path("t.csv"), "x,colour,c\n1,red,a\n2,red,b\n3,,a\n");
  const json table = json::parse(weft({"data", "csv:t.csv?split=0", "--json"}).out);
  EXPECT_EQ(table["columns"][0]["mean"], 2.0);
  EXPECT_EQ(table["columns"][1]["kind"], "category");
  write_all(path("t.txt"), "abcabcabcabc");
  const json text = json::parse(weft({"data", "text:t.txt?length=2&split=0", "--json"}).out);
  EXPECT_EQ(text["task"], "language_model");
  EXPECT_EQ(text["vocabulary"], 3);
}

}  // namespace
}  // namespace weft::cli_tests
