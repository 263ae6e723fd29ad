#include "weft/tensor/safetensors.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"

namespace weft {
namespace {

class SafetensorsTest : public FilesTest {
 protected:
  /// A file with the given JSON header and data, its length field as it should be.
  std::string write_raw(const std::string& header, const Bytes& data) {
    Bytes bytes(8);
    const uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    bytes.insert(bytes.end(), header.begin(), header.end());
    bytes.insert(bytes.end(), data.begin(), data.end());
    return write("a.safetensors", bytes);
  }
  void expect_bad(const std::string& header, const Bytes& data, const std::vector<std::string>& texts) {
    const std::string file = write_raw(header, data);
    std::vector<std::string> all = texts;
    all.push_back("a.safetensors");
    expect_error([&] { read_safetensors(file); }, ErrorKind::data, all);
  }
};

TEST_F(SafetensorsTest, RoundTripOfEveryType) {
  SafetensorsFile file;
  for (const DType dtype : all_dtypes()) {
    if (is_packed(dtype)) continue;
    Tensor tensor(dtype, Shape{3, 5});
    for (int64_t at = 0; at < tensor.bytes(); ++at) tensor.data_as<uint8_t>()[at] = static_cast<uint8_t>(at * 7);
    file.tensors.emplace("tensor." + std::string(name_of(dtype)), tensor);
  }
  file.tensors.emplace("scalar", Tensor::of(Shape{}, std::vector<float>{2.5f}));
  file.tensors.emplace("empty", Tensor(DType::f32, Shape{0, 4}));
  file.metadata["epoch"] = "3";
  write_safetensors(path("a.safetensors"), file);
  const SafetensorsFile back = read_safetensors(path("a.safetensors"));
  EXPECT_EQ(back.metadata, file.metadata);
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const Tensor& read = back.tensors.at(name);
    EXPECT_EQ(read.type(), tensor.type()) << name;
    EXPECT_EQ(std::memcmp(read.data(), tensor.data(), static_cast<size_t>(tensor.bytes())), 0) << name;
  }
}

TEST_F(SafetensorsTest, HasNoPackedTypes) {
  SafetensorsFile file;
  file.tensors.emplace("nibbles", Tensor(DType::i4, Shape{3}));
  expect_error([&] { write_safetensors(path("packed.safetensors"), file); }, ErrorKind::usage,
               {"tensor 'nibbles' is i4[3]", "no packed types", "cast it to i8 first"});
  EXPECT_FALSE(std::filesystem::exists(path("packed.safetensors")));
}

TEST_F(SafetensorsTest, ReadsAFileWrittenByHand) {
  const std::string file = write_raw(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                                     {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0});  // 1 and -2, little endian
  const Tensor tensor = read_safetensors(file).tensors.at("w");
  EXPECT_EQ(tensor.shape(), (Shape{2}));
  EXPECT_EQ(tensor.data_as<float>()[0], 1.0f);
  EXPECT_EQ(tensor.data_as<float>()[1], -2.0f);
}

TEST_F(SafetensorsTest, NumpyReadsWhatIsWritten) {
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3-numpy is not installed";
  SafetensorsFile file;
  file.tensors.emplace("a.weight", Tensor::of(Shape{2, 3}, std::vector<float>{0, 0.5, -1, 2, 1e-30f, 3e30f}));
  file.tensors.emplace("b", Tensor::of_i32(Shape{2}, std::vector<int32_t>{-7, 2147483647}));
  write_safetensors(path("a.safetensors"), file);
  write_atomically(path("read.py"), R"(
import json, sys
import numpy
raw = open(sys.argv[1], "rb").read()
length = int.from_bytes(raw[:8], "little")
header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
assert length % 8 == 0
def tensor(name):
    entry = header[name]
    begin, end = entry["data_offsets"]
    return numpy.frombuffer(data[begin:end], {"F32": "<f4", "I32": "<i4"}[entry["dtype"]]).reshape(entry["shape"])
numpy.testing.assert_array_equal(tensor("a.weight"), numpy.float32([[0, 0.5, -1], [2, 1e-30, 3e30]]))
numpy.testing.assert_array_equal(tensor("b"), numpy.int32([-7, 2147483647]))
)");
  EXPECT_EQ(std::system(("/usr/bin/python3 " + path("read.py") + " " + path("a.safetensors")).c_str()), 0);
}

TEST_F(SafetensorsTest, MissingFile) {
  expect_error([&] { read_safetensors(path("none.safetensors")); }, ErrorKind::io,
               {"none.safetensors", "No such file"});
}

TEST_F(SafetensorsTest, TooShort) {
  const std::string file = write("a.safetensors", {1, 2, 3});
  expect_error([&] { read_safetensors(file); }, ErrorKind::data, {"3 bytes are too few"});
}

TEST_F(SafetensorsTest, HeaderLongerThanTheFile) {
  const std::string file = write("a.safetensors", {100, 0, 0, 0, 0, 0, 0, 0, '{', '}'});
  expect_error([&] { read_safetensors(file); }, ErrorKind::data, {"wants 100 bytes, the file has 2"});
}

TEST_F(SafetensorsTest, HeaderLengthThatOverflows) {
  const std::string file = write("a.safetensors", Bytes(16, 0xff));
  expect_error([&] { read_safetensors(file); }, ErrorKind::data, {"no whole safetensors file"});
}

TEST_F(SafetensorsTest, HeaderThatIsNoJson) { expect_bad("{\"w\":", {}, {"no JSON object"}); }

TEST_F(SafetensorsTest, HeaderThatIsAnArray) { expect_bad("[1,2]", {}, {"no JSON object"}); }

TEST_F(SafetensorsTest, EntryWithoutShape) {
  expect_bad(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", Bytes(4), {"tensor 'w' lacks"});
}

TEST_F(SafetensorsTest, EntryOfTheWrongKind) {
  expect_bad(R"({"w":{"dtype":"F32","shape":4,"data_offsets":[0,4]}})", Bytes(4), {"'w'", "wrong kind"});
}

TEST_F(SafetensorsTest, UnknownType) {
  expect_bad(R"({"w":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", Bytes(4), {"'w' has dtype F8_E4M3"});
}

TEST_F(SafetensorsTest, NegativeDimension) {
  expect_bad(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", Bytes(4), {"no whole number"});
}

TEST_F(SafetensorsTest, AbsurdShape) {
  expect_bad(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", Bytes(4),
             {"absurd shape"});
}

TEST_F(SafetensorsTest, TruncatedData) {
  expect_bad(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", Bytes(7),
             {"'w' ends at byte 8", "file holds 7", "truncated"});
}

TEST_F(SafetensorsTest, OffsetsThatGoBackwards) {
  expect_bad(R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[4,2]}})", Bytes(8), {"'w'"});
}

TEST_F(SafetensorsTest, BytesThatDoNotFitTheShape) {
  expect_bad(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", Bytes(8),
             {"has 8 bytes, its shape wants 12"});
}

TEST_F(SafetensorsTest, BytesOfNoTensor) {
  const std::string one = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  expect_bad(one, {1, 2, 3}, {"has 1 bytes behind its tensors"});
  expect_bad(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
      {1, 2, 3}, {"'b' begins at byte 2 of the data, the one before it ends at 1"});
  expect_bad(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
      {1, 2, 3}, {"'b' begins at byte 1"});
}

TEST_F(SafetensorsTest, TheSameNameTwice) {
  expect_bad(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
      {1, 2}, {"has two tensors 'a'"});
}

TEST_F(SafetensorsTest, MetadataThatIsNoObject) { expect_bad(R"({"__metadata__":3})", {}, {"__metadata__"}); }

TEST_F(SafetensorsTest, AFullDiskKeepsTheOldFile) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  SafetensorsFile file;
  file.tensors.emplace("w", Tensor::of(Shape{1}, std::vector<float>{1}));
  write_safetensors(path("a"), file);
  std::filesystem::create_symlink("/dev/full", path("a") + ".tmp-" + std::to_string(getpid()));
  file.tensors.at("w").data_as<float>()[0] = 2;
  expect_error([&] { write_safetensors(path("a"), file); }, ErrorKind::io, {"No space left"});
  EXPECT_EQ(read_safetensors(path("a")).tensors.at("w").data_as<float>()[0], 1.0f);
}

}  // namespace
}  // namespace weft
