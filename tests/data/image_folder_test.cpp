// Folders of pictures: which files count, how they become samples, and what is said about folders that will not do.
#include "weft/data/formats/image_folder.h"

#include <sys/resource.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/data/idx_bytes.h"
#include "weft/data/augment/augment_color.h"
#include "weft/data/augment/erase.h"
#include "weft/data/dataset/check_samples.h"
#include "weft/data/load/loader.h"
#include "weft/data/open_dataset.h"
#include "weft/data/pictures/picture_cache.h"

namespace weft::data {
namespace {

class ImageFolderTest : public FilesTest {
 protected:
  /// A picture of one grey value.
  void add(const std::string& name, uint8_t value, int64_t height = 12, int64_t width = 12) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    write_png(path(name), {3, height, width, Bytes(static_cast<size_t>(3 * height * width), value)});
  }
  void add_classes(int per_class) {
    for (int at = 0; at < per_class; ++at) {
      add("cat/" + std::to_string(at) + ".png", static_cast<uint8_t>(at));
      add("dog/" + std::to_string(at) + ".png", static_cast<uint8_t>(100 + at));
    }
  }
  std::unique_ptr<Dataset> open(const std::string& options = "size=8&split=0", Split split = Split::train,
                                const std::string& encoding = "", const std::string& folder = "") {
    return open_dataset("images:" + path(folder) + "?" + options, split, encoding);
  }
  static Bytes pixels(const Dataset& dataset, int64_t index) {
    Bytes bytes(static_cast<size_t>(dataset.sample_bytes()));
    dataset.get({.index = index}, bytes);
    return bytes;
  }
};

TEST_F(ImageFolderTest, ClassesAreFoldersAndFilesAreSorted) {
  add("zebra/b.png", 2);
  add("zebra/a.png", 1);
  add("ant/deep/er.png", 3);
  const auto dataset = open();
  EXPECT_EQ(dataset->info().class_names, (std::vector<std::string>{"ant", "zebra"}));
  EXPECT_EQ(dataset->info().sample_shape, Shape({3, 8, 8}));
  ASSERT_EQ(dataset->size(), 3);
  for (const auto& [index, label, value] : {std::tuple{0, 0, 3}, {1, 1, 1}, {2, 1, 2}}) {
    EXPECT_EQ(dataset->label(index), label);
    EXPECT_EQ(pixels(*dataset, index), Bytes(192, static_cast<uint8_t>(value)));
  }
}

TEST_F(ImageFolderTest, SamplesAreTheMiddleOfTheResizedPicture) {
  std::filesystem::create_directories(path("a"));
  add("b/x.png", 0);
  Image wide{1, 8, 24, {}};  // columns 0 to 7 hold 0, 8 to 15 hold 200, the rest 0
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 24; ++x) wide.pixels.push_back(x >= 8 && x < 16 ? 200 : 0);
  write_png(path("a/x.png"), wide);
  EXPECT_EQ(pixels(*open("size=8&resize=8&split=0"), 0), Bytes(192, 200)) << "grey becomes RGB";
  EXPECT_EQ(pixels(*open("size=8&resize=8&split=0&channels=1"), 0), Bytes(64, 200));
  const auto picture = open("size=4&split=0")->picture(0);
  EXPECT_EQ(std::pair(picture->height, picture->width), (std::pair<int64_t, int64_t>{5, 15})) << "4 x 8 / 7";
}

TEST_F(ImageFolderTest, OtherFilesAreCountedInOneNote) {
  add_classes(2);
  write("cat/notes.txt", {'x'});
  write("dog/movie.mp4", {'x'});
  write("dog/.hidden", {'x'});
  const auto dataset = open();
  EXPECT_EQ(dataset->size(), 4);
  EXPECT_NE(dataset->info().note.find("left out 2 files that are no JPEG or PNG images, such as"), std::string::npos)
      << dataset->info().note;
  EXPECT_NE(dataset->info().note.find("cat/notes.txt"), std::string::npos);
}

TEST_F(ImageFolderTest, OddNamesAreNames) {
  add("gatto però/é à ü.PNG", 1);
  add("chien?&=#/a b;c.png", 2);
  add(std::string("no\xffutf8/x.png"), 3);
  const auto dataset = open();
  EXPECT_EQ(dataset->info().class_names, (std::vector<std::string>{"chien?&=#", "gatto però", "no\\xffutf8"}));
  for (int64_t index = 0; index < 3; ++index) EXPECT_NO_THROW(pixels(*dataset, index));
}

TEST_F(ImageFolderTest, SetsTheSameShareOfEveryClassAside) {
  add_classes(10);
  const auto train = open("size=8"), test = open("size=8", Split::test, train->info().encoding);
  EXPECT_EQ(train->size(), 16);
  ASSERT_EQ(test->size(), 4);
  std::set<uint8_t> seen;
  int dogs = 0;
  for (int64_t index = 0; index < 4; ++index) {
    dogs += test->label(index);
    seen.insert(pixels(*test, index)[0]);
  }
  EXPECT_EQ(dogs, 2);
  for (int64_t index = 0; index < 16; ++index) EXPECT_FALSE(seen.contains(pixels(*train, index)[0]));
}

TEST_F(ImageFolderTest, TakesTrainAndTestFoldersAsTheyAre) {
  add("train/cat/1.png", 1);
  add("train/dog/2.png", 2);
  add("val/dog/3.png", 3);
  const auto train = open("size=8");
  EXPECT_EQ(train->size(), 2);
  const auto test = open("size=8", Split::test, train->info().encoding);
  ASSERT_EQ(test->size(), 1);
  EXPECT_EQ(test->label(0), 1) << "numbered as in training";
  EXPECT_TRUE(has_test_split(standard_dataset_kinds(), "images:" + path("")));
}

TEST_F(ImageFolderTest, OtherFoldersAreReadAsInTraining) {
  add_classes(2);
  const std::string encoding = open("size=8&resize=9&channels=1&split=0")->info().encoding;
  add("more/dog/3.png", 3);
  const auto other = open("", Split::all, encoding, "more");
  EXPECT_EQ(other->info().sample_shape, Shape({1, 8, 8}));
  EXPECT_EQ(other->label(0), 1);
  add("more/bird/3.png", 3);
  expect_error([&] { open("", Split::all, encoding, "more"); }, ErrorKind::data,
               {"the class 'bird' is none of the 2 classes of the training data"});
}

TEST_F(ImageFolderTest, CacheChangesNothing) {
  add_classes(3);
  const auto with = open(), without = open("size=8&split=0&cache=0");
  for (int round = 0; round < 2; ++round)
    for (int64_t index = 0; index < 6; ++index) EXPECT_EQ(pixels(*with, index), pixels(*without, index));
  EXPECT_EQ(with->picture(0), with->picture(0)) << "kept";
  EXPECT_NE(without->picture(0), without->picture(0)) << "decoded again";
}

TEST_F(ImageFolderTest, LoaderDecodesInAnyNumberOfWorkersAlike) {
  add_classes(9);
  const auto dataset = open();
  LoaderOptions options{.batch = 4,
                        .seed = 3,
                        .shuffle = true,
                        .drop_last = true,
                        .augment = {},
                        .mix = {},
                        .statistics = {{0.f, 0.f, 0.f}, {1.f, 1.f, 1.f}}};
  options.augment.resized_crop = 0.3;
  options.augment.rotate = 20;
  options.augment.changes = {random_color({.brightness = 0.5}), erasing_change(0.5)};
  options.mix.cutmix = 1;
  options.workers = 3;
  Loader loader(*dataset, options);
  loader.start();
  for (int64_t epoch = 0; epoch < 2; ++epoch)
    for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
      const Batch &batch = loader.next(), again = loader.load_batch(epoch, step);
      EXPECT_EQ(std::memcmp(batch.samples.data(), again.samples.data(), static_cast<size_t>(again.samples.bytes())), 0);
      EXPECT_EQ(batch.targets.dtype(), DType::f32);
      EXPECT_EQ(batch.targets.shape(), Shape({4, 2}));
      EXPECT_EQ(std::memcmp(batch.targets.data(), again.targets.data(), static_cast<size_t>(again.targets.bytes())), 0);
    }
}

TEST_F(ImageFolderTest, ExactDecodingIsKeptInTheEncoding) {
  add_classes(3);
  const auto usual = open("size=8&split=0"), exact = open("size=8&split=0&decode=exact");
  EXPECT_EQ(usual->info().encoding.find("decode"), std::string::npos) << "as before there was a choice";
  EXPECT_NE(exact->info().encoding.find(R"("decode":"exact")"), std::string::npos) << exact->info().encoding;
  const auto again = open("split=0", Split::train, exact->info().encoding);
  EXPECT_EQ(again->info().encoding, exact->info().encoding);
  expect_error([&] { open("decode=fast"); }, ErrorKind::usage, {"decode=fast"});
}

TEST_F(ImageFolderTest, ExactDecodingIsThatOfTheWholePicture) {
  Bytes noise;
  uint32_t seed = 1;
  for (int at = 0; at < 64 * 64; ++at)
    noise.push_back(static_cast<uint8_t>((seed = seed * 1664525u + 1013904223u) >> 24));
  const std::vector<uint8_t> jpeg = encode_jpeg({1, 64, 64, noise}, 70);
  for (const char* name : {"a", "b"}) std::filesystem::create_directories(path(name));
  write("a/1.jpg", jpeg);
  add("b/1.png", 3);
  const auto exact = open("size=16&resize=16&channels=1&split=0&decode=exact");
  const auto scaled = open("size=16&resize=16&channels=1&split=0");
  EXPECT_EQ(exact->picture(0)->pixels, resize_shorter(decode_image("a", jpeg), 16).pixels);
  EXPECT_NE(scaled->picture(0)->pixels, exact->picture(0)->pixels);
  EXPECT_EQ(read_sample(path("a/1.jpg"), exact->info()).pixels, pixels(*exact, 0));
  EXPECT_EQ(read_sample(path("a/1.jpg"), scaled->info()).pixels, pixels(*scaled, 0));
}

TEST_F(ImageFolderTest, DamagedPicturesArePassedOverUpToALimit) {
  add_classes(4);
  write("cat/1.png", {0x89, 'P', 'N', 'G', 0});
  const auto dataset = open("size=8&split=0&max_bad_records=1");
  EXPECT_EQ(dataset->size(), 8);
  EXPECT_EQ(dataset->damaged_samples(), 0) << "nobody has looked";
  EXPECT_EQ(pixels(*dataset, 1), pixels(*dataset, 2)) << "the next of its class stands for it";
  EXPECT_EQ(dataset->label(1), 0);
  EXPECT_EQ(dataset->damaged_samples(), 1);
  ASSERT_EQ(dataset->list_damaged().size(), 1u);
  EXPECT_NE(dataset->list_damaged()[0].message.find("cat/1.png"), std::string::npos);
  EXPECT_EQ(pixels(*dataset, 1), pixels(*dataset, 2)) << "counted once";
  EXPECT_EQ(dataset->damaged_samples(), 1);
}

TEST_F(ImageFolderTest, TheLastOfAClassIsReplacedByItsFirst) {
  add_classes(3);
  write("cat/2.png", {1, 2, 3});
  const auto dataset = open("size=8&split=0&max_bad_records=40%");
  EXPECT_EQ(pixels(*dataset, 2), pixels(*dataset, 0)) << "not by the first dog";
}

TEST_F(ImageFolderTest, MoreDamagedPicturesThanAllowedAreAnError) {
  add_classes(4);
  write("cat/1.png", {1, 2, 3});
  write("dog/0.png", {});
  const auto dataset = open("size=8&split=0&max_bad_records=1");
  pixels(*dataset, 1);
  expect_error([&] { pixels(*dataset, 4); }, ErrorKind::data,
               {"[images] 2 of the 8 training pictures are damaged, max_bad_records=1 may be: ", "cat/1.png",
                "dog/0.png", "copy them again, or allow more"});
}

TEST_F(ImageFolderTest, AClassWithoutAWholePictureIsAnError) {
  add_classes(2);
  for (const char* name : {"cat/0.png", "cat/1.png"}) write(name, {1, 2, 3});
  const auto dataset = open("size=8&split=0&max_bad_records=3");
  expect_error([&] { pixels(*dataset, 0); }, ErrorKind::data, {"every picture of the class of 'cat/0.png' is damaged"});
}

TEST_F(ImageFolderTest, AMissingPictureIsADamagedOne) {
  add_classes(3);
  const auto dataset = open("size=8&split=0&max_bad_records=1");
  std::filesystem::remove(path("cat/1.png"));
  EXPECT_EQ(pixels(*dataset, 1), pixels(*dataset, 2));
  EXPECT_EQ(dataset->damaged_samples(), 1);
}

TEST_F(ImageFolderTest, WhatMayBeOverAtTheNextTryIsNoDamage) {
  add_classes(3);
  const auto dataset = open("size=8&split=0&max_bad_records=6");
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit none{0, files.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);  // no further file can be opened
  expect_error([&] { pixels(*dataset, 1); }, ErrorKind::io, {"cat/1.png"});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(dataset->damaged_samples(), 0);
  EXPECT_EQ(pixels(*dataset, 1), Bytes(192, 1)) << "itself";
}

TEST_F(ImageFolderTest, APictureThatCannotBeOpenedIsNotLeftOutOfTestData) {
  for (const char* part : {"train", "test"})
    for (const char* name : {"/cat/0.png", "/cat/1.png", "/dog/0.png"}) add(std::string(part) + name, 7);
  std::filesystem::remove(path("test/cat/0.png"));
  std::filesystem::create_symlink("0.png", path("test/cat/0.png"));  // leads round and round
  expect_error([&] { open("size=8&max_bad_records=3", Split::test); }, ErrorKind::io, {"test/cat/0.png"});
}

TEST_F(ImageFolderTest, DamagedTestPicturesAreLeftOut) {
  for (const char* part : {"train", "test"})
    for (const char* name : {"/cat/0.png", "/cat/1.png", "/dog/0.png"}) add(std::string(part) + name, 7);
  write("test/cat/0.png", {1, 2, 3});
  const auto dataset = open("size=8&max_bad_records=1", Split::test);
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->damaged_samples(), 1);
  EXPECT_NE(dataset->info().note.find("1 of 3 test pictures are damaged and left out"), std::string::npos)
      << dataset->info().note;
  for (int64_t index = 0; index < 2; ++index) EXPECT_EQ(pixels(*dataset, index), Bytes(192, 7));
  expect_error([&] { open("size=8&max_bad_records=0", Split::test); }, ErrorKind::data,
               {"1 of the 3 test pictures are damaged"});
}

TEST_F(ImageFolderTest, TestDataOfNothingButDamageAreRefused) {
  for (const char* part : {"train", "test"})
    for (const char* name : {"/cat/0.png", "/dog/0.png"}) add(std::string(part) + name, 7);
  for (const char* name : {"test/cat/0.png", "test/dog/0.png"}) write(name, {1, 2, 3});
  expect_error([&] { open("size=8&max_bad_records=100%", Split::test); }, ErrorKind::data,
               {"[images] all 2 test pictures of '" + path("test") + "' are damaged", "cat/0.png", "copy them again"});
}

TEST_F(ImageFolderTest, DamagedPicturesAreNamed) {
  add_classes(2);
  write("dog/0.png", {0x89, 'P', 'N', 'G', 0, 1});
  write("dog/2.jpg", {});
  const auto dataset = open();
  const std::vector<std::string> messages = unreadable_samples(*dataset, 2);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_NE(messages[0].find("dog/0.png' is a damaged PNG"), std::string::npos) << messages[0];
  EXPECT_NE(messages[1].find("dog/2.jpg' is empty"), std::string::npos) << messages[1];
  expect_error([&] { channel_statistics(*dataset, 2); }, ErrorKind::data, {"dog/0.png"});
}

TEST_F(ImageFolderTest, NoFolder) {
  expect_error([&] { open("", Split::train, "", "none"); }, ErrorKind::io, {"none' is no folder"});
  expect_error([] { open_dataset("images:", Split::train); }, ErrorKind::usage, {"images:DIR"});
}

TEST_F(ImageFolderTest, NoClassFolders) {
  add("a.png", 1);
  expect_error([&] { open(); }, ErrorKind::data, {"has no folders", "each class"});
}

TEST_F(ImageFolderTest, NoImages) {
  std::filesystem::create_directories(path("cat"));
  write("cat/a.txt", {'x'});
  expect_error([&] { open(); }, ErrorKind::data, {"holds no JPEG or PNG images", "DIR/CLASS/PICTURE.jpg"});
}

TEST_F(ImageFolderTest, EmptyClassFolder) {
  add_classes(1);
  std::filesystem::create_directories(path("bird"));
  expect_error([&] { open(); }, ErrorKind::data, {"the class folder", "bird' holds no JPEG or PNG images"});
}

TEST_F(ImageFolderTest, OneClass) {
  add("cat/1.png", 1);
  expect_error([&] { open(); }, ErrorKind::data, {"one class folder only, 'cat'"});
}

TEST_F(ImageFolderTest, TooFewToSetAside) {
  add_classes(1);
  const std::string encoding = open()->info().encoding;
  expect_error([&] { open("size=8", Split::test, encoding); }, ErrorKind::data,
               {"has 2 pictures, of which split=0.2 leaves none for the test split", "split=0"});
}

TEST_F(ImageFolderTest, SaysWhatTheCacheWillStillTake) {
  for (int at = 0; at < 64; ++at) {
    add("cat/" + std::to_string(at) + ".png", 1, 8, 16);
    add("dog/" + std::to_string(at) + ".png", 2, 8, 16);
  }
  const auto dataset = open("size=8&resize=8&split=0");
  EXPECT_EQ(dataset->cache_bytes_to_come(), 64 * 3 * 8 * 16) << "the other 64 were kept as they were looked at";
  for (int64_t at = 0; at < dataset->size(); ++at) dataset->picture(at);
  EXPECT_EQ(dataset->cache_bytes_to_come(), 0);
  EXPECT_EQ(open("size=8&resize=8&split=0&cache=0")->cache_bytes_to_come(), 0);
}

TEST_F(ImageFolderTest, ALimitedCacheSaysWhatItLeavesOut) {
  for (int at = 0; at < 10; ++at) {
    add("cat/" + std::to_string(at) + ".png", 1, 8, 16);
    add("dog/" + std::to_string(at) + ".png", 2, 8, 16);
  }
  constexpr int64_t kEach = 3 * 8 * 16;
  const auto dataset = open("size=8&resize=8&split=0");
  EXPECT_EQ(dataset->uncached_bytes(), 0);
  const auto limited = open("size=8&resize=8&split=0&disk=0");
  limited->limit_cache(5 * kEach);
  EXPECT_EQ(limited->cache_bytes_to_come(), 0) << "five were kept as they were looked at";
  EXPECT_EQ(limited->uncached_bytes(), 15 * kEach);
  limited->limit_cache(7 * kEach);
  EXPECT_EQ(limited->uncached_bytes(), 15 * kEach) << "a limit is only ever lowered";
  EXPECT_EQ(pixels(*limited, 19), pixels(*dataset, 19));
  EXPECT_EQ(open("size=8&resize=8&split=0&cache=0")->uncached_bytes(), 0) << "wanted so";
}

TEST_F(ImageFolderTest, WhatFindsNoPlaceInMemoryIsKeptOnDisk) {
  int made = 0;
  const PictureCache cache(3, 25, 20);  // pictures of 10 bytes: two in memory, ...
  const auto get = [&](int64_t index) {
    return cache.get(index, [&] {
      ++made;
      return Image{1, 2, 5, Bytes(10, static_cast<uint8_t>(index))};
    });
  };
  for (int pass = 0; pass < 3; ++pass)
    for (int64_t index = 0; index < 3; ++index) EXPECT_EQ(get(index)->pixels, Bytes(10, static_cast<uint8_t>(index)));
  EXPECT_EQ(made, 3);
  EXPECT_EQ(cache.bytes(), 20);
  EXPECT_EQ(cache.disk_bytes(), 10);
  EXPECT_EQ(cache.bytes_left_out(100), 55);
}

TEST_F(ImageFolderTest, ADiskThatCannotBeWrittenIsNoError) {
  setenv("TMPDIR", path("nowhere").c_str(), 1);
  int made = 0;
  const PictureCache cache(1, 5, 100);
  for (int pass = 0; pass < 2; ++pass)
    EXPECT_EQ(cache.get(0,
                        [&] {
                          return Image{1, 2, 5, Bytes(10, static_cast<uint8_t>(++made))};
                        })
                  ->pixels.size(),
              10u);
  unsetenv("TMPDIR");
  EXPECT_EQ(made, 2);
  EXPECT_EQ(cache.disk_bytes(), 0);
}

TEST_F(ImageFolderTest, BadOptions) {
  add_classes(1);
  expect_error([&] { open("size=0"); }, ErrorKind::usage, {"[images] size=0: wants a whole number from 1"});
  expect_error([&] { open("size=32&resize=16"); }, ErrorKind::usage, {"resize=16: wants a whole number from 32"});
  expect_error([&] { open("channels=2"); }, ErrorKind::usage, {"3 (RGB) or 1 (grey)"});
  expect_error([&] { open("sise=8"); }, ErrorKind::usage, {"did you mean 'size'?"});
}

TEST(PictureCache, KeepsWhatFitsAndMakesTheRestEachTime) {
  const PictureCache cache(4, 25);
  std::atomic<int> made = 0;
  const auto make = [&] {
    ++made;
    return Image{1, 2, 5, std::vector<uint8_t>(10, 9)};
  };
  for (int round = 0; round < 3; ++round)
    for (int64_t index = 0; index < 4; ++index) EXPECT_EQ(cache.get(index, make)->pixels.size(), 10u);
  EXPECT_EQ(cache.bytes(), 20);
  EXPECT_EQ(made, 2 + 3 * 2);
}

TEST(PictureCache, ServesThreads) {
  const PictureCache cache(8, 1000);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int64_t at = 0; at < 800; ++at) {
        const int64_t index = at % 8;
        const auto image = cache.get(index, [&] { return Image{1, 1, 1, {static_cast<uint8_t>(index)}}; });
        wrong += image->pixels[0] != index;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.bytes(), 8);
}

}  // namespace
}  // namespace weft::data
