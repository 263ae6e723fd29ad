// Reading well-formed data sets; malformed ones are in data_errors_test.cpp.
#include "weft/data/open_dataset.h"

#include "tests/data/idx_bytes.h"

namespace weft::data {
namespace {

class OpenDatasetTest : public FilesTest {
 protected:
  Bytes pixels_of(const Dataset& dataset, int64_t index) {
    Bytes pixels(static_cast<size_t>(dataset.sample_bytes()));
    dataset.get({.index = index}, pixels);
    return pixels;
  }
  /// One CIFAR-10 file of `count` records whose pixels are all `value`.
  void write_cifar(const std::string& name, size_t count, uint8_t label, uint8_t value) {
    Bytes bytes;
    for (size_t at = 0; at < count; ++at) {
      bytes.push_back(label);
      bytes.insert(bytes.end(), 3072, value);
    }
    write(name, bytes);
  }
};

TEST_F(OpenDatasetTest, ReadsIdxImagesAndLabels) {
  const auto images = write("images", idx_bytes({3, 2, 4}, counting_bytes(24)));
  const auto labels = write("labels", idx_bytes({3}, {0, 2, 1}));
  const auto dataset = open_dataset("idx:" + images + "," + labels, Split::train);
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->info().sample_shape, (Shape{1, 2, 4}));
  EXPECT_EQ(dataset->info().classes, 3);
  EXPECT_EQ(dataset->label(1), 2);
  EXPECT_EQ(pixels_of(*dataset, 1), (Bytes{8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST_F(OpenDatasetTest, ReadsGzippedIdx) {
  const auto images = write_gzip("images.gz", idx_bytes({2, 2, 2}, counting_bytes(8)));
  const auto labels = write_gzip("labels.gz", idx_bytes({2}, {1, 0}));
  const auto dataset = open_dataset("idx:" + images + "," + labels, Split::train);
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(pixels_of(*dataset, 1), (Bytes{4, 5, 6, 7}));
}

TEST_F(OpenDatasetTest, ReadsIdxWithChannels) {
  const auto images = write("images", idx_bytes({1, 3, 2, 2}, counting_bytes(12)));
  const auto labels = write("labels", idx_bytes({1}, {4}));
  const auto dataset = open_dataset("idx:" + images + "," + labels, Split::train);
  EXPECT_EQ(dataset->info().sample_shape, (Shape{3, 2, 2}));
  EXPECT_EQ(dataset->info().classes, 5);
}

TEST_F(OpenDatasetTest, TestSplitOfIdxHasTheClassesOfTheTrainingSplit) {
  const auto images = write("images", idx_bytes({2, 1, 1}, {7, 8}));
  const auto labels = write("labels", idx_bytes({2}, {0, 5}));
  const auto test_images = write("test-images", idx_bytes({1, 1, 1}, {9}));
  const auto test_labels = write("test-labels", idx_bytes({1}, {1}));
  const auto dataset =
      open_dataset("idx:" + images + "," + labels + "," + test_images + "," + test_labels, Split::test);
  EXPECT_EQ(dataset->size(), 1);
  EXPECT_EQ(dataset->info().classes, 6);
  EXPECT_EQ(pixels_of(*dataset, 0), Bytes{9});
}

TEST_F(OpenDatasetTest, ReadsCifarBatchesInOrder) {
  for (uint8_t part = 1; part <= 5; ++part)
    write_cifar("data_batch_" + std::to_string(part) + ".bin", 2, part, static_cast<uint8_t>(10 * part));
  write_cifar("test_batch.bin", 3, 9, 99);
  const auto train = open_dataset("cifar10:" + folder_.string(), Split::train);
  EXPECT_EQ(train->size(), 10);
  EXPECT_EQ(train->info().sample_shape, (Shape{3, 32, 32}));
  EXPECT_EQ(train->label(7), 4);
  EXPECT_EQ(pixels_of(*train, 7), Bytes(3072, 40));
  const auto test = open_dataset("cifar10:" + folder_.string(), Split::test);
  EXPECT_EQ(test->size(), 3);
  EXPECT_EQ(test->info().class_names[9], "truck");
}

TEST_F(OpenDatasetTest, ReadsAFolderLikeFashionMnist) {
  write("t10k-images-idx3-ubyte", idx_bytes({2, 28, 28}, counting_bytes(2 * 28 * 28)));
  write_gzip("t10k-labels-idx1-ubyte.gz", idx_bytes({2}, {9, 2}));
  const auto dataset = open_dataset("fashion-mnist:" + folder_.string(), Split::test);
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->info().classes, 10);
  EXPECT_EQ(dataset->info().class_names[9], "ankle boot");
}

TEST(FashionMnist, DebianPackageHasItsKnownContent) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "the Debian package dataset-fashion-mnist is not installed";
  const auto train = open_dataset("fashion-mnist", Split::train), test = open_dataset("fashion-mnist", Split::test);
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(test->size(), 10000);
  EXPECT_EQ(train->info().sample_shape, (Shape{1, 28, 28}));
  for (const auto& [index, label] : {std::pair{0, 9}, {1, 0}, {2, 0}, {3, 3}}) EXPECT_EQ(train->label(index), label);
  // The values that everyone normalises Fashion-MNIST with.
  const ChannelStatistics statistics = channel_statistics(*train);
  EXPECT_NEAR(statistics.mean[0], 0.2860f, 1e-4f);
  EXPECT_NEAR(statistics.deviation[0], 0.3530f, 1e-4f);
}

TEST(ChannelStatistics, AreThoseOfEachChannel) {
  DatasetInfo info{"two", Shape{2, 1, 2}, 1, {}};
  const MemoryDataset dataset(info, {0, 255, 51, 51, 255, 0, 51, 51}, {0, 0});
  const ChannelStatistics statistics = channel_statistics(dataset);
  EXPECT_FLOAT_EQ(statistics.mean[0], 0.5f);
  EXPECT_FLOAT_EQ(statistics.deviation[0], 0.5f);
  EXPECT_FLOAT_EQ(statistics.mean[1], 0.2f);
  EXPECT_FLOAT_EQ(statistics.deviation[1], 1.0f);  // constant: normalises to zeros
}

}  // namespace
}  // namespace weft::data
