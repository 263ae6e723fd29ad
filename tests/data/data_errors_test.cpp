// Each test is one mistake in a data set's files or name, with the message it gives.
#include "tests/data/idx_bytes.h"
#include "weft/data/open_dataset.h"

namespace weft::data {
namespace {

class DataErrorsTest : public FilesTest {
 protected:
  /// Opens the two files as the training split and expects an error.
  void expect_idx_error(ErrorKind kind, const std::vector<std::string>& texts) {
    expect_error([&] { open_dataset("idx:" + path("images") + "," + path("labels"), Split::train); }, kind, texts);
  }
  void write_good_images() { write("images", idx_bytes({2, 2, 2}, counting_bytes(8))); }
  void write_good_labels() { write("labels", idx_bytes({2}, {0, 1})); }
};

TEST_F(DataErrorsTest, UnknownKindNamesTheNearest) {
  expect_error([] { open_dataset("fashon-mnist", Split::train); }, ErrorKind::usage,
               {"unknown data 'fashon-mnist'", "did you mean 'fashion-mnist'?"});
}

TEST_F(DataErrorsTest, UnknownKindFarFromAllListsThem) {
  expect_error([] { open_dataset("imagenet-22k-large", Split::train); }, ErrorKind::usage,
               {"known: fashion-mnist, idx, cifar10"});
}

TEST_F(DataErrorsTest, MissingFashionMnistNamesThePackage) {
  expect_error([&] { open_dataset("fashion-mnist:" + path("nowhere"), Split::train); }, ErrorKind::io,
               {"nowhere/train-images-idx3-ubyte", "dataset-fashion-mnist", "fashion-mnist:DIR"});
}

TEST_F(DataErrorsTest, MissingIdxFile) {
  write_good_labels();
  expect_idx_error(ErrorKind::io, {"no file", "images"});
}

TEST_F(DataErrorsTest, OneIdxFileAlone) {
  expect_error([] { open_dataset("idx:images", Split::train); }, ErrorKind::usage,
               {"does not name 2 or 4 files", "idx:IMAGES,LABELS"});
}

TEST_F(DataErrorsTest, EmptyIdxFileName) {
  expect_error([] { open_dataset("idx:images,", Split::train); }, ErrorKind::usage, {"does not name 2 or 4 files"});
}

TEST_F(DataErrorsTest, TestSplitWithoutTestFiles) {
  expect_error([] { open_dataset("idx:a,b", Split::test); }, ErrorKind::usage,
               {"has no test files", "idx:IMAGES,LABELS,TEST_IMAGES,TEST_LABELS"});
}

TEST_F(DataErrorsTest, WrongMagic) {
  write("images", {'G', 'I', 'F', '8', 0, 0, 0, 0});
  write_good_labels();
  expect_idx_error(ErrorKind::data, {"images' is no IDX file", "47 49 46 38"});
}

TEST_F(DataErrorsTest, EmptyFile) {
  write("images", {});
  write_good_labels();
  expect_idx_error(ErrorKind::data, {"images' is no IDX file: 0 bytes"});
}

TEST_F(DataErrorsTest, ElementsOfAnotherType) {
  Bytes floats = idx_bytes({2, 2, 2}, counting_bytes(32));
  floats[2] = 0x0d;
  write("images", floats);
  write_good_labels();
  expect_idx_error(ErrorKind::data, {"IDX type 0x0d", "unsigned bytes"});
}

TEST_F(DataErrorsTest, TruncatedHeader) {
  write("images", {0, 0, 8, 3, 0, 0, 0, 2, 0});
  write_good_labels();
  expect_idx_error(ErrorKind::data, {"truncated within its header"});
}

TEST_F(DataErrorsTest, TruncatedPixels) {
  write("images", idx_bytes({2, 2, 2}, counting_bytes(7)));
  write_good_labels();
  expect_idx_error(ErrorKind::data, {"images' is truncated", "(2,2,2)", "8 bytes, but 7 follow"});
}

TEST_F(DataErrorsTest, TooManyBytes) {
  write("images", idx_bytes({2, 2, 2}, counting_bytes(9)));
  write_good_labels();
  expect_idx_error(ErrorKind::data, {"images' is too long"});
}

TEST_F(DataErrorsTest, AbsurdHeaderSizes) {
  write("images", idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, counting_bytes(8)));
  write_good_labels();
  expect_idx_error(ErrorKind::data, {"images' is truncated", "4294967295"});
}

TEST_F(DataErrorsTest, ImagesWithoutPixels) {
  write("images", idx_bytes({2, 0, 2}, {}));
  write_good_labels();
  expect_idx_error(ErrorKind::data, {"images of shape (1,0,2)"});
}

TEST_F(DataErrorsTest, CountsThatDiffer) {
  write_good_images();
  write("labels", idx_bytes({3}, {0, 1, 1}));
  expect_idx_error(ErrorKind::data, {"2 images", "3 labels", "same split"});
}

TEST_F(DataErrorsTest, LabelsAndImagesSwapped) {
  write("images", idx_bytes({2}, {0, 1}));
  write("labels", idx_bytes({2, 2, 2}, counting_bytes(8)));
  expect_idx_error(ErrorKind::data, {"labels have one", "is it the image file?"});
}

TEST_F(DataErrorsTest, NoLabels) {
  write("images", idx_bytes({0, 2, 2}, {}));
  write("labels", idx_bytes({0}, {}));
  expect_idx_error(ErrorKind::data, {"holds no labels"});
}

TEST_F(DataErrorsTest, TestLabelThatTrainingNeverSaw) {
  write_good_images();
  write_good_labels();
  write("test-labels", idx_bytes({2}, {0, 2}));
  const std::string spec =
      "idx:" + path("images") + "," + path("labels") + "," + path("images") + "," + path("test-labels");
  expect_error([&] { open_dataset(spec, Split::test); }, ErrorKind::data,
               {"test-labels': label 2 of sample 1 is out of range", "2 classes"});
}

TEST_F(DataErrorsTest, FashionMnistLabelOutOfRange) {
  write("train-images-idx3-ubyte", idx_bytes({1, 28, 28}, counting_bytes(28 * 28)));
  write("train-labels-idx1-ubyte", idx_bytes({1}, {10}));
  expect_error([&] { open_dataset("fashion-mnist:" + folder_.string(), Split::train); }, ErrorKind::data,
               {"label 10 of sample 0 is out of range", "10 classes"});
}

TEST_F(DataErrorsTest, DamagedGzip) {
  write_gzip("images", idx_bytes({2, 2, 2}, counting_bytes(8)));
  std::filesystem::resize_file(path("images"), std::filesystem::file_size(path("images")) - 10);
  write_good_labels();
  expect_idx_error(ErrorKind::data, {"images' is a damaged or truncated gzip file"});
}

TEST_F(DataErrorsTest, AFolderInPlaceOfAFile) {
  std::filesystem::create_directory(path("images"));
  write_good_labels();
  expect_idx_error(ErrorKind::io, {"cannot read", "images"});
}

TEST_F(DataErrorsTest, CifarWithoutFolder) {
  expect_error([] { open_dataset("cifar10", Split::train); }, ErrorKind::usage, {"cifar10:DIR"});
}

TEST_F(DataErrorsTest, MissingCifarFile) {
  expect_error([&] { open_dataset("cifar10:" + folder_.string(), Split::test); }, ErrorKind::io,
               {"no file", "test_batch.bin", "cifar-10-binary.tar.gz"});
}

TEST_F(DataErrorsTest, TruncatedCifarFile) {
  write("test_batch.bin", Bytes(3072, 0));
  expect_error([&] { open_dataset("cifar10:" + folder_.string(), Split::test); }, ErrorKind::data,
               {"test_batch.bin' has 3072 bytes", "multiple of 3073"});
}

TEST_F(DataErrorsTest, EmptyCifarFile) {
  write("test_batch.bin", {});
  expect_error([&] { open_dataset("cifar10:" + folder_.string(), Split::test); }, ErrorKind::data, {"it is empty"});
}

TEST_F(DataErrorsTest, CifarLabelOutOfRange) {
  Bytes bytes(2 * 3073, 0);
  bytes[3073] = 10;
  write("test_batch.bin", bytes);
  expect_error([&] { open_dataset("cifar10:" + folder_.string(), Split::test); }, ErrorKind::data,
               {"label 10 of record 1 is out of range"});
}

}  // namespace
}  // namespace weft::data
