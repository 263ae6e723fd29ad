// Pictures with a class per pixel: exact values of all kinds of PNG, sizes, what does not count, and mistakes.
#include "weft/data/formats/masks.h"

#include <cmath>

#include "tests/support/files_for_tests.h"
#include "weft/data/load/loader.h"
#include "weft/data/open_dataset.h"
#include "weft/data/pictures/image.h"
#include "weft/data/pictures/mask.h"

namespace weft::data {
namespace {

void append_number(Bytes& bytes, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(value >> shift));
}

void append_chunk(Bytes& png, const std::string& type, const Bytes& content) {
  append_number(png, static_cast<uint32_t>(content.size()));
  Bytes body(type.begin(), type.end());
  body.insert(body.end(), content.begin(), content.end());
  png.insert(png.end(), body.begin(), body.end());
  append_number(png, static_cast<uint32_t>(crc32(0, body.data(), static_cast<uInt>(body.size()))));
}

/// A PNG of the given colour type, written by hand; `rows` hold what follows each row's filter byte.
Bytes png_of(uint32_t width, uint8_t depth, uint8_t color_type, const std::vector<Bytes>& rows,
             const Bytes& palette = {}) {
  Bytes png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, header;
  append_number(header, width);
  append_number(header, static_cast<uint32_t>(rows.size()));
  header.insert(header.end(), {depth, color_type, 0, 0, 0});
  append_chunk(png, "IHDR", header);
  if (!palette.empty()) append_chunk(png, "PLTE", palette);
  Bytes raw;
  for (const Bytes& row : rows) {
    raw.push_back(0);
    raw.insert(raw.end(), row.begin(), row.end());
  }
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  Bytes packed(size);
  compress(packed.data(), &size, raw.data(), static_cast<uLong>(raw.size()));
  packed.resize(size);
  append_chunk(png, "IDAT", packed);
  append_chunk(png, "IEND", {});
  return png;
}

class MasksTest : public FilesTest {
 protected:
  void pair(const std::string& name, const std::vector<Bytes>& rows, const std::string& folder = "d") {
    for (const char* kind : {"images", "masks"}) std::filesystem::create_directories(path(folder + "/" + kind));
    const auto width = static_cast<uint32_t>(rows[0].size());
    Bytes picture{
        'P', '5', ' ', static_cast<uint8_t>('0' + width), ' ', static_cast<uint8_t>('0' + rows.size()), ' ', '2',
        '5', '5', '\n'};
    for (const Bytes& row : rows)
      for (const uint8_t value : row) picture.push_back(static_cast<uint8_t>(10 * value));
    write(folder + "/images/" + name + ".pgm", picture);
    write(folder + "/masks/" + name + ".png", png_of(width, 8, 0, rows));
  }
  std::unique_ptr<Dataset> open(const std::string& options, Split split = Split::train,
                                const std::string& encoding = "") {
    return open_dataset("masks:" + path("d") + "?" + options, split, encoding);
  }
  static std::vector<int32_t> target(const Dataset& dataset, int64_t index) {
    std::vector<int32_t> labels(static_cast<size_t>(dataset.info().target_shape.elements()));
    dataset.get_target({.index = index}, {reinterpret_cast<uint8_t*>(labels.data()), 4 * labels.size()});
    return labels;
  }
};

TEST_F(MasksTest, ReadsTheStoredNumbersOfEveryKind) {
  const Bytes palette{255, 0, 0, 0, 255, 0, 255, 0, 0, 9, 9, 9};  // two colours are the same
  const std::vector<std::pair<std::string, Bytes>> files{
      {"grey8", png_of(3, 8, 0, {{0, 3, 255}, {1, 2, 254}})},
      {"grey2", png_of(3, 2, 0, {{0b00'11'01'00}, {0b10'01'00'00}})},
      {"grey1", png_of(3, 1, 0, {{0b01100000}, {0b10000000}})},
      {"palette8", png_of(3, 8, 3, {{0, 3, 2}, {1, 2, 0}}, palette)},
      {"palette4", png_of(3, 4, 3, {{0x03, 0x20}, {0x12, 0x00}}, palette)}};
  const std::vector<Bytes> wanted{
      {0, 3, 255, 1, 2, 254}, {0, 3, 1, 2, 1, 0}, {0, 1, 1, 1, 0, 0}, {0, 3, 2, 1, 2, 0}, {0, 3, 2, 1, 2, 0}};
  for (size_t at = 0; at < files.size(); ++at) {
    const Image mask = read_mask(write(files[at].first, files[at].second));
    EXPECT_EQ(mask.width, 3) << files[at].first;
    EXPECT_EQ(mask.pixels, wanted[at]) << files[at].first;
  }
}

TEST_F(MasksTest, RefusesWhatIsNoMask) {
  expect_error(
      [&] {
        read_mask(write("m", png_of(1, 8, 2, {{1, 2, 3}})));
      },
      ErrorKind::data, {"m' is no mask", "got colours"});
  expect_error([&] { read_mask(write("m", png_of(1, 16, 0, {{1, 2}}))); }, ErrorKind::data, {"got 16 bits"});
  expect_error([&] { read_mask(write("m", png_of(1, 8, 4, {{1, 2}}))); }, ErrorKind::data, {"got transparency"});
  expect_error([&] { read_mask(write("m", {'P', '5'})); }, ErrorKind::data, {"m' is no PNG file or a damaged one"});
  Bytes cut = png_of(3, 8, 0, {{0, 3, 255}});
  cut.erase(cut.end() - 20, cut.end());
  expect_error([&] { read_mask(write("m", cut)); }, ErrorKind::data, {"damaged or truncated"});
}

TEST_F(MasksTest, PairsByNameAndWhatDoesNotCount) {
  pair("a", {{0, 1}, {2, 255}});
  pair("b", {{0, 0}, {1, 1}});
  const auto dataset = open("split=0&height=2&width=2&channels=1");
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->info().task, "segmentation");
  EXPECT_EQ(dataset->info().classes, 3);
  EXPECT_EQ(dataset->info().predictions_per_sample(), 4);
  EXPECT_EQ(target(*dataset, 0), (std::vector<int32_t>{0, 1, 2, -100}));
  ASSERT_EQ(dataset->info().facts.size(), 1u);
  EXPECT_EQ(dataset->info().facts[0].second, "class 0 37.5 %, class 1 37.5 %, class 2 12.5 %, not counted 12.5 %");
}

TEST_F(MasksTest, MasksTakeTheNearestPixel) {
  pair("a", {{0, 1}, {2, 3}});
  EXPECT_EQ(target(*open("split=0&height=4&width=2"), 0), (std::vector<int32_t>{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(resize_mask({1, 1, 5, {0, 1, 2, 3, 4}}, 1, 2).pixels, (std::vector<uint8_t>{1, 3}))
      << "torch.nn.functional.interpolate(mode='nearest-exact')";
}

TEST_F(MasksTest, ClassesMayBeNamed) {
  pair("a", {{0, 1}, {0, 1}});
  write("d/classes.txt", {0xef, 0xbb, 0xbf, 's', 'k', 'y', '\n', 's', 'e', 'a', '\r', '\n'});
  EXPECT_EQ(open("split=0")->info().class_names, (std::vector<std::string>{"sky", "sea"}));
  write("d/classes.txt", {'s', 'k', 'y', '\n', 's', 'e', 'a', '\n', 's', 'u', 'n', '\n'});
  EXPECT_EQ(open("split=0")->info().classes, 3) << "though no mask shows the sun";
  write("d/classes.txt", {'s', 'k', 'y', '\n'});
  expect_error([&] { open("split=0"); }, ErrorKind::data, {"classes.txt' names 1 classes, the masks have 2"});
}

TEST_F(MasksTest, TestFolderIsReadAsTheTrainingFolder) {
  pair("a", {{0, 1}, {0, 1}}, "d/train");
  pair("b", {{0, 1}, {7, 1}}, "d/val");
  EXPECT_TRUE(has_test_split(standard_dataset_kinds(), "masks:" + path("d")));
  EXPECT_FALSE(has_whole(standard_dataset_kinds(), "masks:" + path("d")));
  EXPECT_EQ(open("height=2&width=2")->info().classes, 8) << "what test masks alone show is a class, too";
  EXPECT_EQ(open("height=2&width=2")->info().facts.at(0).second.substr(0, 30), "class 0 50.0 %, class 1 50.0 %")
      << "of the training masks";
  const auto train = open("height=2&width=2&classes=2"),
             test = open("height=2&width=2", Split::test, train->info().encoding);
  EXPECT_EQ(test->info().classes, 2);
  expect_error(
      [&] { target(*test, 0); }, ErrorKind::data,
      {"b.png' has the value 7, but there are 2 classes, counted from 0; give classes=8 or more, or ignore=7"});
  const auto ignored = open("height=2&width=2&ignore=7", Split::test, train->info().encoding);
  EXPECT_EQ(target(*ignored, 0), (std::vector<int32_t>{0, 1, -100, 1}));
}

TEST_F(MasksTest, MasksThatAreSetAsideCountForTheClassesToo) {
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) pair(name, {{0, 1}});
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    pair(name, {{0, 5}});
    EXPECT_EQ(open("split=0.5")->info().classes, 6) << "in whichever part '" << name << "' is";
    pair(name, {{0, 1}});
  }
}

TEST_F(MasksTest, PicturesWithoutAMaskAreCounted) {
  pair("a", {{0, 1}});
  pair("b", {{0, 1}});
  std::filesystem::remove(path("d/masks/b.png"));
  EXPECT_EQ(open("split=0")->info().note,
            "'" + path("d") + "': left out 1 picture without a mask, such as '" + path("d/images/b.pgm") + "'");
  std::filesystem::remove(path("d/masks/a.png"));
  expect_error([&] { open("split=0"); }, ErrorKind::data, {"d' has no picture with a mask"});
}

TEST_F(MasksTest, FoldersThatAreNone) {
  expect_error([] { open_dataset("masks:", Split::train); }, ErrorKind::usage, {"[masks] wants a folder"});
  expect_error([&] { open_dataset("masks:" + path("none"), Split::train); }, ErrorKind::io, {"none' is no folder"});
  std::filesystem::create_directories(path("d"));
  expect_error([&] { open("split=0"); }, ErrorKind::data, {"has no folders images and masks"});
  pair("a", {{0, 0}});
  expect_error([&] { open("split=0"); }, ErrorKind::data, {"hold one class only"});
  expect_error([&] { open("split=0", Split::all, "{}"); }, ErrorKind::data, {"was not trained on masks"});
}

// The pixel values say which class: whatever is done to both, they must still agree.
TEST_F(MasksTest, AugmentationMovesMasksWithTheirPictures) {
  std::vector<Bytes> rows(8, Bytes(8));
  for (size_t y = 0; y < 8; ++y)
    for (size_t x = 0; x < 8; ++x) rows[y][x] = static_cast<uint8_t>(x / 2 + 4 * (y / 2));
  pair("a", rows);
  const auto dataset = open("split=0&height=8&width=8&channels=1");
  AugmentOptions augment;
  augment.flip = Flip::random;
  augment.crop_padding = 3;
  LoaderOptions options{
      .batch = 1, .seed = 5, .workers = 0, .shuffle = true, .augment = augment, .mix = {}, .statistics = {{0}, {1}}};
  int64_t outside = 0, moved = 0;
  const Loader loader(*dataset, options);
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const Batch batch = loader.load_batch(epoch, 0);
    const float* pixel = batch.samples.data_as<float>();
    const int32_t* label = batch.targets.data_as<int32_t>();
    for (int64_t at = 0; at < 64; ++at) {
      const int value = static_cast<int>(std::lround(pixel[at] * 255));
      if (label[at] == -100) {
        EXPECT_EQ(value, 0);
        ++outside;
      } else {
        EXPECT_EQ(value, 10 * label[at]) << "epoch " << epoch << ", pixel " << at;
      }
    }
    moved += label[0] != 0 ? 1 : 0;
  }
  EXPECT_GT(outside, 0);
  EXPECT_GT(moved, 10);
}

TEST_F(MasksTest, RotatedMasksFollowTheirPictures) {
  std::vector<Bytes> rows(9, Bytes(9, 0));
  for (size_t y = 0; y < 9; ++y)
    for (size_t x = 0; x < 9; ++x) rows[y][x] = x < 4 ? 0 : 20;
  pair("a", rows);
  const auto dataset = open("split=0&height=9&width=9&channels=1");
  AugmentOptions augment;
  augment.rotate = 40;
  const Loader loader(
      *dataset,
      {.batch = 1, .seed = 5, .workers = 0, .shuffle = true, .augment = augment, .mix = {}, .statistics = {{0}, {1}}});
  int64_t agree = 0, counted = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const Batch batch = loader.load_batch(epoch, 0);
    for (int64_t at = 0; at < 81; ++at) {
      const int32_t label = batch.targets.data_as<int32_t>()[at];
      if (label == -100) continue;
      ++counted;
      agree += (batch.samples.data_as<float>()[at] > 100.0f / 255) == (label == 20) ? 1 : 0;
    }
  }
  EXPECT_GT(static_cast<double>(agree), 0.95 * static_cast<double>(counted)) << "but for the border between them";
}

TEST_F(MasksTest, ResizedCropsShowTheSamePart) {
  std::vector<Bytes> rows(8, Bytes(8));
  for (size_t y = 0; y < 8; ++y)
    for (size_t x = 0; x < 8; ++x) rows[y][x] = static_cast<uint8_t>(x < 4 ? 0 : 20);
  pair("a", rows);
  const auto dataset = open("split=0&height=8&width=8&channels=1");
  AugmentOptions augment;
  augment.resized_crop = 0.3;
  const Loader loader(
      *dataset,
      {.batch = 1, .seed = 5, .workers = 0, .shuffle = true, .augment = augment, .mix = {}, .statistics = {{0}, {1}}});
  int64_t agree = 0, right_side = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const Batch batch = loader.load_batch(epoch, 0);
    for (int64_t at = 0; at < 64; ++at) {
      const bool is_right = batch.targets.data_as<int32_t>()[at] == 20;
      right_side += is_right ? 1 : 0;
      agree += (batch.samples.data_as<float>()[at] > 100.0f / 255) == is_right ? 1 : 0;
    }
  }
  EXPECT_GT(agree, 20 * 64 * 95 / 100) << "but for the border between them";
  EXPECT_NE(right_side, 20 * 32);
}

}  // namespace
}  // namespace weft::data
