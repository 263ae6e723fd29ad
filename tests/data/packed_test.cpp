// Packed data: the same samples as what was packed, whatever it was; damage of any kind is counted, named and survived.
#include "weft/data/packed/packed.h"

#include <nlohmann/json.hpp>

#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"
#include "weft/data/dataset/dataset_json.h"
#include "weft/data/load/loader.h"
#include "weft/data/open_dataset.h"
#include "weft/data/packed/writer.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

Bytes sample_of(const Dataset& dataset, const SampleKey& key) {
  Bytes bytes(static_cast<size_t>(dataset.sample_bytes()));
  dataset.get(key, bytes);
  return bytes;
}
Bytes target_of(const Dataset& dataset, const SampleKey& key) {
  Bytes bytes(static_cast<size_t>(dataset.target_bytes()));
  dataset.get_target(key, bytes);
  return bytes;
}

class PackedTest : public FilesTest {
 protected:
  /// Random pixels, so that no two pictures are alike.
  Image picture(int64_t height, int64_t width, uint32_t seed) const {
    Image image{3, height, width, Bytes(static_cast<size_t>(3 * height * width))};
    for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>((seed = seed * 1664525u + 1013904223u) >> 24);
    return image;
  }
  void text(const std::string& name, const std::string& content) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    write(name, Bytes(content.begin(), content.end()));
  }
  /// Two classes of JPEG and PNG pictures of many sizes.
  void add_pictures(int per_class) const {
    for (const char* name : {"cat", "dog"})
      for (int at = 0; at < per_class; ++at) {
        const std::string file = fmt::format("photos/{}/{:02}", name, at);
        fs::create_directories(path(std::string("photos/") + name));
        const Image image = picture(20 + at, 31 - at % 5, static_cast<uint32_t>(at + 1000 * name[0]));
        if (at % 3 == 0)
          write_png(path(file + ".png"), image);
        else
          write(file + ".jpg", encode_jpeg(image, 80));
      }
  }
  PackResult pack_spec(const std::string& spec, PackOptions options = {}, const std::string& out = "out") const {
    const auto training = open_dataset(spec, Split::train);
    std::unique_ptr<Dataset> test;
    if (has_test_split(standard_dataset_kinds(), spec))
      test = open_dataset(spec, Split::test, training->info().encoding);
    options.source = spec;
    options.weft = "test";
    return pack(*training, test.get(), path(out), options);
  }
  std::unique_ptr<Dataset> open(const std::string& options = "", Split split = Split::train,
                                const std::string& encoding = "") const {
    return open_dataset("packed:" + path("out") + "?" + options, split, encoding);
  }
  /// All samples, in two passes, and what is known of them.
  void expect_same(const std::string& spec) const {
    SCOPED_TRACE(spec);
    const auto training = open_dataset(spec, Split::train);
    for (const Split split : {Split::train, Split::test}) {
      const auto original = open_dataset(spec, split, split == Split::train ? "" : training->info().encoding);
      const auto packed = open("", split, split == Split::train ? "" : training->info().encoding);
      EXPECT_EQ(to_json(original->info()), to_json(packed->info()));
      ASSERT_EQ(original->size(), packed->size());
      for (int64_t index = 0; index < original->size(); ++index)
        for (const uint64_t pass : {0, 7}) {
          ASSERT_EQ(sample_of(*original, {index, pass}), sample_of(*packed, {index, pass})) << index;
          ASSERT_EQ(target_of(*original, {index, pass}), target_of(*packed, {index, pass})) << index;
        }
      if (original->info().sample_dtype == DType::u8 && split == Split::train) {
        EXPECT_EQ(channel_statistics(*original).mean, channel_statistics(*packed).mean);
        EXPECT_EQ(channel_statistics(*original).deviation, channel_statistics(*packed).deviation);
      }
      if (original->info().target_kind() == TargetKind::sample_class) {
        EXPECT_EQ(original->class_counts(), packed->class_counts());
      }
    }
  }
  void expect_packs(const std::string& spec) const {
    fs::remove_all(path("out"));
    pack_spec(spec);
    expect_same(spec);
  }
  /// Changes the byte in the middle of a record of the only shard of a split.
  void damage(const std::string& shard, uint64_t byte) const {
    std::vector<uint8_t> bytes = read_bytes(path("out/" + shard));
    bytes[byte] ^= 0x10;
    write("out/" + shard, bytes);
  }
  /// Where the records of a split begin.
  std::vector<IndexEntry> entries(const std::string& split) const {
    static std::vector<uint8_t> bytes;  // names point into it
    bytes = read_bytes(path("out/" + split + ".index"));
    const PackedIndex index(bytes, "index", 100);
    std::vector<IndexEntry> all;
    for (int64_t at = 0; at < index.size(); ++at) all.push_back(index[at]);
    return all;
  }
  size_t shards(const std::string& split) const { return read_packed_manifest(path("out")).find(split)->shards.size(); }
};

TEST_F(PackedTest, PicturesKeepTheirBytesAndGiveTheSameSamples) {
  add_pictures(10);
  expect_packs("images:" + path("photos") + "?size=12&seed=3");
  const auto photo = read_bytes(path("photos/cat/01.jpg")), shard = read_bytes(path("out/train-00000.shard"));
  const auto test_shard = read_bytes(path("out/test-00000.shard"));
  const auto holds = [&](const Bytes& all) {
    return std::search(all.begin(), all.end(), photo.begin(), photo.end()) != all.end();
  };
  EXPECT_TRUE(holds(shard) || holds(test_shard));
}

TEST_F(PackedTest, BatchesAreThoseOfThePictures) {
  add_pictures(10);
  const std::string spec = "images:" + path("photos") + "?size=12";
  pack_spec(spec);
  const auto original = open_dataset(spec, Split::train);
  const auto packed = open();
  LoaderOptions options{.batch = 5, .seed = 4, .workers = 2, .shuffle = true, .augment = {}, .mix = {}};
  options.augment.resized_crop = 0.3;
  options.augment.flip = Flip::random;
  options.statistics = channel_statistics(*original);
  const Loader of_files(*original, options), of_records(*packed, options);
  for (int64_t epoch = 0; epoch < 2; ++epoch)
    for (int64_t step = 0; step < of_files.steps_per_epoch(); ++step) {
      const Batch a = of_files.load_batch(epoch, step), b = of_records.load_batch(epoch, step);
      ASSERT_EQ(std::memcmp(a.samples.data(), b.samples.data(), static_cast<size_t>(a.samples.bytes())), 0);
      ASSERT_EQ(std::memcmp(a.targets.data(), b.targets.data(), static_cast<size_t>(a.targets.bytes())), 0);
    }
}

TEST_F(PackedTest, PicturesAreCutToOtherSizesAsOptionsSay) {
  add_pictures(5);
  pack_spec("images:" + path("photos") + "?size=12");
  const auto original = open_dataset("images:" + path("photos") + "?size=9&resize=15&channels=1", Split::train);
  const auto packed = open("size=9&resize=15&channels=1");
  EXPECT_EQ(sample_of(*original, {2, 0}), sample_of(*packed, {2, 0}));
  EXPECT_EQ(packed->known_statistics(), std::nullopt) << "those of other samples";
  EXPECT_EQ(channel_statistics(*original).mean, channel_statistics(*packed).mean);
}

TEST_F(PackedTest, TablesTextsAndMasksGiveTheSameSamples) {
  std::string table = "size,colour,kind\n", labelled, pairs;
  for (int at = 0; at < 40; ++at) {
    table += fmt::format("{},{},{}\n", at * at, at % 3 == 0 ? "red" : "blue", at % 2 == 0 ? "a" : "b");
    labelled += fmt::format("{}\ttext number {}\n", at % 2 == 0 ? "ham" : "spam", at);
    pairs += fmt::format("{}\t{}\n", at, 1000 - at);
  }
  text("table.csv", table);
  text("labelled.tsv", labelled);
  text("pairs.tsv", pairs);
  std::string book;
  for (int at = 0; at < 20'000; ++at) book += fmt::format("{} is not {}. ", at, at * 7919 % 10'007);
  text("book.txt", book);
  for (int at = 0; at < 6; ++at) {
    fs::create_directories(path("masks/images"));
    fs::create_directories(path("masks/masks"));
    write_png(path(fmt::format("masks/images/{}.png", at)), picture(9, 9, static_cast<uint32_t>(at)));
    Image mask{1, 9, 9, Bytes(81, static_cast<uint8_t>(at % 3))};
    mask.pixels[4] = 255;
    write_png(path(fmt::format("masks/masks/{}.png", at)), mask);
  }
  expect_packs("csv:" + path("table.csv"));
  expect_packs("csv:" + path("table.csv") + "?label=size&task=regression");
  expect_packs("labelled:" + path("labelled.tsv"));
  expect_packs("pairs:" + path("pairs.tsv"));
  expect_packs("text:" + path("book.txt") + "?length=50");
  EXPECT_GT(read_packed_manifest(path("out")).find("train")->records, 5) << "in several records";
  expect_packs("masks:" + path("masks") + "?height=7&width=8");
}

TEST_F(PackedTest, ShardsEndAtTheirSize) {
  add_pictures(12);
  PackOptions options;
  options.shard_bytes = 3000;
  options.threads = 3;
  pack_spec("images:" + path("photos") + "?size=12", options);
  EXPECT_GT(shards("train"), 3u);
  expect_same("images:" + path("photos") + "?size=12");
  const PackedManifest manifest = read_packed_manifest(path("out"));
  for (const PackedShard& shard : manifest.find("train")->shards)
    EXPECT_EQ(static_cast<int64_t>(fs::file_size(path("out/" + shard.file))), shard.bytes);
}

TEST_F(PackedTest, TheResultDependsOnNoThreads) {
  add_pictures(12);
  PackOptions options;
  for (const int threads : {1, 4}) {
    options.threads = threads;
    pack_spec("images:" + path("photos") + "?size=12", options, fmt::format("out{}", threads));
  }
  for (const char* file : {"train-00000.shard", "test.index", "manifest.json"})
    EXPECT_EQ(read_bytes(path(std::string("out1/") + file)), read_bytes(path(std::string("out4/") + file))) << file;
}

TEST_F(PackedTest, LargePicturesAreMadeSmaller) {
  fs::create_directories(path("photos/a"));
  fs::create_directories(path("photos/b"));
  Image smooth{3, 200, 300, Bytes(3 * 200 * 300)};
  for (size_t at = 0; at < smooth.pixels.size(); ++at) smooth.pixels[at] = static_cast<uint8_t>(at % 300 * 255 / 300);
  write_png(path("photos/a/large.png"), smooth);
  write("photos/b/small.jpg", encode_jpeg(resize(smooth, 30, 40), 95));
  const std::string spec = "images:" + path("photos") + "?size=16&split=0";
  PackOptions options;
  options.picture_size = 40;
  pack_spec(spec, options);
  const auto original = open_dataset(spec, Split::train), packed = open();
  EXPECT_EQ(open("size=16&resize=40")->picture(0)->width, 60) << "without enlarging: 300 x 40 / 200";
  EXPECT_EQ(read_packed_manifest(path("out")).quality, 90);
  const Bytes before = sample_of(*original, {0, 0}), after = sample_of(*packed, {0, 0});
  double difference = 0;
  for (size_t at = 0; at < before.size(); ++at)
    difference = std::max(difference, std::abs(1.0 * before[at] - after[at]));
  EXPECT_LT(difference, 6);
  EXPECT_GT(difference, 0);
  EXPECT_EQ(sample_of(*original, {1, 0}), sample_of(*packed, {1, 0})) << "the small one keeps its bytes";
  EXPECT_EQ(channel_statistics(*packed).mean, packed->known_statistics()->mean);
  expect_error([&] { open("size=40"); }, ErrorKind::usage, {"shorter side is 40 at most, resize=46", "--size 46"});
  options.picture_size = 10;
  expect_error([&] { pack_spec(spec, options, "other"); }, ErrorKind::usage, {"--size 10", "resize="});
  EXPECT_FALSE(fs::exists(path("other")));
}

TEST_F(PackedTest, ABitFlipIsNamedAndItsNeighbourReadInItsPlace) {
  add_pictures(30);
  pack_spec("images:" + path("photos") + "?size=12");
  const auto whole = open();
  const IndexEntry entry = entries("train")[7];
  damage("train-00000.shard", entry.offset + entry.bytes / 2);
  const auto packed = open("max_bad_records=1");
  EXPECT_EQ(packed->damaged_samples(), 0) << "nobody has looked";
  EXPECT_EQ(sample_of(*packed, {7, 0}), sample_of(*whole, {8, 0}));
  EXPECT_EQ(target_of(*packed, {7, 0}), target_of(*whole, {8, 0}));
  EXPECT_EQ(sample_of(*packed, {6, 0}), sample_of(*whole, {6, 0}));
  ASSERT_EQ(packed->damaged_samples(), 1);
  const std::string message = packed->list_damaged().front().message;
  for (const std::string& part : {path("out/train-00000.shard"), std::string("record 7"), std::string(entry.name),
                                  std::string("checksum differs")})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(sample_of(*packed, {7, 0}), sample_of(*whole, {8, 0})) << "counted once";
  EXPECT_EQ(packed->damaged_samples(), 1);
}

TEST_F(PackedTest, MoreDamageThanTheLimitIsAnError) {
  add_pictures(30);
  pack_spec("images:" + path("photos") + "?size=12");
  for (const size_t number : {3, 9}) damage("train-00000.shard", entries("train")[number].offset + 40);
  const auto packed = open("max_bad_records=1");
  sample_of(*packed, {3, 0});
  expect_error(
      [&] {
        sample_of(*packed, {9, 0});
      },
      ErrorKind::data,
      {"2 of the 48 train records are damaged", "max_bad_records=1", "record 3", "record 9", "--verify"});
  const auto strict = open("max_bad_records=0");
  expect_error([&] { target_of(*strict, {3, 0}); }, ErrorKind::data, {"1 of the 48"});
  const auto usual = open();  // 1 % of 48
  expect_error([&] { sample_of(*usual, {3, 0}); }, ErrorKind::data, {"max_bad_records=0 may be"});
}

TEST_F(PackedTest, DamagedTestRecordsAreLeftOut) {
  add_pictures(30);
  pack_spec("images:" + path("photos") + "?size=12");
  const auto whole = open("", Split::test, open()->info().encoding);
  damage("test-00000.shard", entries("test")[2].offset + 40);
  const auto packed = open("max_bad_records=50%", Split::test, open()->info().encoding);
  ASSERT_EQ(packed->size(), 11);
  EXPECT_EQ(sample_of(*packed, {1, 0}), sample_of(*whole, {1, 0}));
  EXPECT_EQ(sample_of(*packed, {2, 0}), sample_of(*whole, {3, 0}));
  EXPECT_EQ(packed->label(10), whole->label(11));
  EXPECT_NE(packed->info().note.find("1 of 12 test records are damaged and left out"), std::string::npos);
  EXPECT_EQ(packed->class_counts()[0] + packed->class_counts()[1], 11);
}

TEST_F(PackedTest, ACutOffOrMissingShardCostsItsRecordsOnly) {
  add_pictures(12);
  PackOptions options;
  options.shard_bytes = 5000;
  pack_spec("images:" + path("photos") + "?size=12", options);
  std::vector<Bytes> samples;
  for (int64_t index = 0; index < 20; ++index) samples.push_back(sample_of(*open(), {index, 0}));
  const std::vector<IndexEntry> all = entries("train");
  fs::resize_file(path("out/train-00001.shard"), 2500);
  fs::remove(path("out/train-00002.shard"));
  const auto packed = open("max_bad_records=100%");
  int64_t lost = 0;
  for (int64_t index = 0; index < packed->size(); ++index) {
    const IndexEntry& entry = all[static_cast<size_t>(index)];
    const bool there = entry.shard != 2 && (entry.shard != 1 || entry.offset + entry.bytes <= 2500);
    lost += !there;
    EXPECT_EQ(sample_of(*packed, {index, 0}) == samples[static_cast<size_t>(index)], there) << index;
  }
  EXPECT_GT(lost, 2);
  EXPECT_EQ(packed->damaged_samples(), lost);
  const std::vector<DamagedSample> found = packed->list_damaged();
  EXPECT_NE(found.front().message.find("cut off at 2500 of"), std::string::npos) << found.front().message;
  EXPECT_NE(found.back().message.find("its shard is missing"), std::string::npos) << found.back().message;
}

TEST_F(PackedTest, ADamagedIndexOrManifestIsRefused) {
  add_pictures(5);
  pack_spec("images:" + path("photos") + "?size=12");
  damage("train.index", 100);
  expect_error([&] { open(); }, ErrorKind::data, {"train.index' is damaged: its checksum differs", "pack the data"});
  fs::resize_file(path("out/train.index"), 99);
  expect_error([&] { open(); }, ErrorKind::data, {"train.index' is truncated"});
  text("out/manifest.json", "{\"format\": 1}");
  expect_error([&] { open(); }, ErrorKind::data, {"manifest.json' is damaged"});
  text("out/manifest.json", "{\"format\": 2}");
  expect_error([&] { open(); }, ErrorKind::data, {"format 2, this weft reads format 1"});
  fs::remove(path("out/manifest.json"));
  expect_error([&] { open(); }, ErrorKind::io, {"has no manifest.json", "weft pack"});
  expect_error([&] { open_dataset("packed:" + path("nowhere"), Split::train); }, ErrorKind::io, {"is no folder"});
}

TEST_F(PackedTest, PicturesThatCannotBeReadAreLeftOutUpToTheLimit) {
  add_pictures(10);
  text("photos/cat/00.png", "no picture");
  const std::string spec = "images:" + path("photos") + "?size=12&split=0";
  std::vector<std::string> notes;
  PackOptions options;
  options.note = [&](const std::string& line) { notes.push_back(line); };
  expect_error([&] { pack_spec(spec, options); }, ErrorKind::data, {"1 samples of the train split", "cat/00.png"});
  EXPECT_FALSE(fs::exists(path("out")));
  options.max_bad_records = "1";
  const auto original = open_dataset(spec, Split::train);
  const PackResult result = pack(*original, nullptr, path("out"), options);
  EXPECT_EQ(result.left_out, 1);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("cat/00.png"), std::string::npos) << notes[0];
  const auto packed = open();
  EXPECT_EQ(packed->size(), 19);
  EXPECT_EQ(sample_of(*packed, {0, 0}), sample_of(*original, {1, 0}));
  EXPECT_EQ(packed->class_counts(), (std::vector<int64_t>{9, 10}));
}

TEST_F(PackedTest, NothingIsLeftWhereItStopsOrFails) {
  add_pictures(10);
  const std::string spec = "images:" + path("photos") + "?size=12";
  PackOptions options;
  options.stop_requested = [] { return true; };
  EXPECT_FALSE(pack_spec(spec, options).finished);
  for (const auto& entry : fs::directory_iterator(folder_)) EXPECT_EQ(entry.path().filename(), "photos");
  fs::create_directories(path("out.tmp-999999999"));  // of a process that was killed
  pack_spec(spec);
  EXPECT_FALSE(fs::exists(path("out.tmp-999999999")));
  expect_error([&] { pack_spec(spec); }, ErrorKind::usage, {"holds something already"});
}

TEST_F(PackedTest, ClassesAreNumberedAsTheTrainedModelHasThem) {
  add_pictures(5);
  const std::string spec = "images:" + path("photos") + "?size=12&split=0";
  pack_spec(spec);
  const std::string encoding = R"({"kind":"images","size":10,"resize":11,"channels":3,"classes":["bird","dog","cat"]})";
  const auto packed = open("", Split::train, encoding), original = open_dataset(spec, Split::train, encoding);
  EXPECT_EQ(packed->info().classes, 3);
  EXPECT_EQ(packed->label(0), 2);
  EXPECT_EQ(packed->label(9), 1);
  EXPECT_EQ(packed->class_counts(), (std::vector<int64_t>{0, 5, 5}));
  EXPECT_EQ(packed->info().sample_shape, Shape({3, 10, 10}));
  const std::string other = R"({"kind":"images","size":10,"resize":11,"channels":3,"classes":["bird","dog"]})";
  expect_error([&] { open("", Split::train, other); }, ErrorKind::data, {"[packed] the class 'cat' is none of the 2"});
}

TEST_F(PackedTest, MistakesAreNamed) {
  text("table.csv", "a,b\n1,x\n2,y\n3,x\n4,y\n5,x\n6,y\n7,x\n8,y\n9,x\n10,y\n");
  pack_spec("csv:" + path("table.csv"));
  expect_error([&] { open("size=3"); }, ErrorKind::usage, {"[packed]", "size= does nothing"});
  expect_error([&] { open("", Split::test, R"({"kind":"table"})"); }, ErrorKind::data, {"encoded otherwise"});
  expect_error([&] { open("max_bad_records=many"); }, ErrorKind::usage, {"max_bad_records: 'many'", "1%"});
  PackOptions options;
  options.quality = 50;
  expect_error([&] { pack_spec("csv:" + path("table.csv"), options, "other"); }, ErrorKind::usage, {"--quality"});
}

TEST(DamageLimit, IsANumberOrAShare) {
  EXPECT_EQ(parse_damage_limit("25", 1000, "x"), 25);
  EXPECT_EQ(parse_damage_limit("1%", 1000, "x"), 10);
  EXPECT_EQ(parse_damage_limit("0.25%", 1000, "x"), 2);
  EXPECT_EQ(parse_damage_limit("100%", 7, "x"), 7);
  EXPECT_EQ(parse_damage_limit("9999", 7, "x"), 7);
  for (const char* text : {"", "%", "-1", "1.5", "101%", "1%%", "x", "nan"})
    expect_error([&] { parse_damage_limit(text, 10, "here"); }, ErrorKind::usage, {"here: '" + std::string(text)});
}

}  // namespace
}  // namespace weft::data
