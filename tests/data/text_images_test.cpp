// Pictures of lines of text: lists and folders, sizes, targets, and what is said about those that do not fit.
#include "weft/data/formats/text_images.h"

#include <set>

#include "tests/support/files_for_tests.h"
#include "weft/data/open_dataset.h"

namespace weft::data {
namespace {

class TextImagesTest : public FilesTest {
 protected:
  /// A grey PGM whose columns have the values 10, 20, ...
  void picture(const std::string& name, int64_t width, int64_t height) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    const std::string header = "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
    Bytes bytes(header.begin(), header.end());
    for (int64_t row = 0; row < height; ++row)
      for (int64_t column = 0; column < width; ++column) bytes.push_back(static_cast<uint8_t>(10 + 10 * column));
    write(name, bytes);
  }
  void text(const std::string& name, const std::string& content) { write(name, Bytes(content.begin(), content.end())); }
  std::unique_ptr<Dataset> open(const std::string& options, Split split = Split::train,
                                const std::string& encoding = "") {
    return open_dataset("lines:" + path("list.tsv") + "?" + options, split, encoding);
  }
  void two_pictures() {
    picture("a/one.pgm", 6, 4);
    picture("two.pgm", 10, 4);
    text("list.tsv", "a/one.pgm\tab\ntwo.pgm\tcab\n");
  }
  static std::vector<int32_t> target(const Dataset& dataset, int64_t index) {
    std::vector<int32_t> labels(static_cast<size_t>(dataset.info().target_shape[0]));
    dataset.get_target({.index = index}, {reinterpret_cast<uint8_t*>(labels.data()), 4 * labels.size()});
    return labels;
  }
  static std::vector<uint8_t> row(const Dataset& dataset, int64_t index) {
    std::vector<uint8_t> pixels(static_cast<size_t>(dataset.sample_bytes()));
    dataset.get({.index = index}, pixels);
    pixels.resize(static_cast<size_t>(dataset.info().sample_shape[2]));
    return pixels;
  }
};

TEST_F(TextImagesTest, ListOfPicturesWithTexts) {
  two_pictures();
  const auto dataset = open("split=0&height=4");
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->info().task, "transcription");
  EXPECT_EQ(dataset->info().sample_shape, Shape({1, 4, 12})) << "as wide as the widest, in fours";
  EXPECT_EQ(dataset->info().class_names, (std::vector<std::string>{"<blank>", "a", "b", "c"}));
  EXPECT_EQ(target(*dataset, 0), (std::vector<int32_t>{1, 2, 0}));
  EXPECT_EQ(target(*dataset, 1), (std::vector<int32_t>{3, 1, 2}));
  EXPECT_EQ(dataset->info().predictions_per_sample(), 1);
}

TEST_F(TextImagesTest, TheLastColumnFillsUp) {
  two_pictures();
  EXPECT_EQ(row(*open("split=0&height=4&width=8"), 0), (std::vector<uint8_t>{10, 20, 30, 40, 50, 60, 60, 60}));
}

TEST_F(TextImagesTest, WidePicturesAreSqueezed) {
  two_pictures();
  EXPECT_EQ(row(*open("split=0&height=4&width=5"), 1), (std::vector<uint8_t>{17, 35, 55, 75, 93}))
      << "(10 + 20 + 30 / 3) / (7 / 3) = 17 at the edge: triangles of two columns to each side";
}

TEST_F(TextImagesTest, PicturesKeepTheirShape) {
  picture("p.pgm", 20, 8);
  const Image line = fit_line(read_image(path("p.pgm")), Shape{3, 4, 12});
  EXPECT_EQ(line.channels, 3);
  EXPECT_NEAR(line.pixels[0], 17, 2);
  EXPECT_EQ(line.pixels[9], line.pixels[11]) << "20 x 8 becomes 10 x 4, filled up to 12";
  EXPECT_NE(line.pixels[9], line.pixels[8]);
}

TEST_F(TextImagesTest, FolderOfPicturesWithTextFiles) {
  picture("f/x.pgm", 6, 4);
  picture("f/y.pgm", 6, 4);
  picture("f/alone.pgm", 6, 4);
  picture("f/silent.pgm", 6, 4);
  text("f/x.gt.txt", "ab\n");
  text("f/y.gt.txt", " b\r\n");
  text("f/silent.gt.txt", "\n");
  const auto dataset = open_dataset("lines:" + path("f") + "?split=0&height=4", Split::train);
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(target(*dataset, 0), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(target(*dataset, 1), (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(dataset->info().note,
            "'" + path("f") + "': left out 1 pictures without a text file and 1 with an empty one");
  EXPECT_EQ(dataset->info().name, "f");
}

TEST_F(TextImagesTest, OtherPicturesAreReadAsTheTrainedOnes) {
  two_pictures();
  const std::string encoding = open("split=0&height=4")->info().encoding;
  picture("z.pgm", 30, 8);
  text("list.tsv", "z.pgm\tba\nz.pgm\tabca\n");
  const auto other = open("split=0", Split::all, encoding);
  EXPECT_EQ(other->info().sample_shape, Shape({1, 4, 12}));
  EXPECT_EQ(other->size(), 1);
  EXPECT_NE(other->info().note.find("left out 1 text of more than 3 characters"), std::string::npos);
  text("list.tsv", "z.pgm\tbäa\n");
  expect_error([&] { open("", Split::all, encoding); }, ErrorKind::data,
               {"list.tsv':1: the character 'ä' is not among the 3 that the model knows"});
}

TEST_F(TextImagesTest, TestPicturesOfTheirOwn) {
  two_pictures();
  picture("t/three.pgm", 6, 4);
  text("t/test.tsv", "three.pgm\tdaddy\n");
  const std::string options = "height=4&test=" + path("t/test.tsv");
  const auto train = open(options);
  EXPECT_EQ(train->size(), 2);
  EXPECT_EQ(train->info().target_shape, Shape{5});
  const auto test = open(options, Split::test, train->info().encoding);
  EXPECT_EQ(target(*test, 0), (std::vector<int32_t>{4, 1, 4, 4, 5}));
}

TEST_F(TextImagesTest, SplitsBySeed) {
  picture("p.pgm", 6, 4);
  std::string list;
  for (int at = 0; at < 50; ++at) list += "p.pgm\t" + std::to_string(100 + at) + "\n";
  text("list.tsv", list);
  std::set<std::vector<int32_t>> seen;
  const auto train = open("split=0.2"), test = open("split=0.2", Split::test);
  EXPECT_EQ(test->size(), 10);
  for (const Dataset* part : {train.get(), test.get()})
    for (int64_t index = 0; index < part->size(); ++index) seen.insert(target(*part, index));
  EXPECT_EQ(seen.size(), 50u);
}

TEST_F(TextImagesTest, OptionsOtherThanTheTrainedOnesAreRefused) {
  two_pictures();
  const std::string encoding = open("split=0&height=4")->info().encoding;
  EXPECT_NO_THROW(open("split=0&height=4&width=0", Split::all, encoding));
  expect_error([&] { open("height=8", Split::all, encoding); }, ErrorKind::usage,
               {"[lines] height=8: the model was trained with 4"});
}

TEST_F(TextImagesTest, TheTestListAloneIsReadWhereItIsWanted) {
  two_pictures();
  const std::string encoding = open("split=0&height=4")->info().encoding;
  const std::string spec = "lines:" + path("gone.tsv") + "?test=" + path("list.tsv");
  EXPECT_EQ(open_dataset(spec, Split::test, encoding)->size(), 2);
}

TEST_F(TextImagesTest, MissingPictureIsNamedWithItsLine) {
  text("list.tsv", "none.png\tab\n");
  expect_error([&] { open("split=0"); }, ErrorKind::io,
               {"[lines] '", "list.tsv':1: no file '", "none.png'; paths begin at the folder of the list"});
}

TEST_F(TextImagesTest, DamagedPictureIsSaidWhenItIsRead) {
  two_pictures();
  write("two.pgm", {'P', '5', ' '});
  const auto dataset = open("split=0&height=4");
  std::vector<uint8_t> pixels(static_cast<size_t>(dataset->sample_bytes()));
  expect_error([&] { dataset->get({.index = 1}, pixels); }, ErrorKind::data, {"two.pgm' is a damaged PGM"});
  write("a/one.pgm", {'P', '5', ' '});
  expect_error([&] { open("split=0"); }, ErrorKind::data, {"one.pgm' is a damaged PGM"});
}

TEST_F(TextImagesTest, NoPathNoListNoTexts) {
  expect_error([] { open_dataset("lines:", Split::train); }, ErrorKind::usage,
               {"[lines] wants a list or a folder: write lines:FILE"});
  expect_error([&] { open_dataset("lines:" + path("none"), Split::train); }, ErrorKind::io, {"[lines] no file"});
  std::filesystem::create_directories(path("f"));
  expect_error([&] { open_dataset("lines:" + path("f"), Split::train); }, ErrorKind::data,
               {"f' holds no pictures NAME.png with texts NAME.gt.txt"});
}

TEST_F(TextImagesTest, WrongOptions) {
  two_pictures();
  expect_error([&] { open("channels=2"); }, ErrorKind::usage, {"[lines] channels=2"});
  expect_error([&] { open("test=x&split=0.1"); }, ErrorKind::usage, {"exclude each other"});
  expect_error([&] { open("length=1&split=0"); }, ErrorKind::data,
               {"every text is longer than 1 characters; raise length="});
}

TEST_F(TextImagesTest, EncodingOfOtherData) {
  two_pictures();
  expect_error([&] { open("", Split::all, R"({"kind":"pairs"})"); }, ErrorKind::data,
               {"was not trained on pictures of text"});
}

}  // namespace
}  // namespace weft::data
