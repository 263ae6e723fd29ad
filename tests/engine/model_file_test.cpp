#include "weft/engine/model_file.h"

#include <gmock/gmock.h>

#include <cstring>

#include "tests/engine/small_model.h"
#include "tests/support/error_of.h"
#include "tests/support/files_for_tests.h"
#include "weft/base/files.h"
#include "weft/base/hash128.h"

namespace weft::engine {
namespace {

using testing::HasSubstr;
using weft::test::error_of;

class ModelFile : public FilesTest {
 protected:
  std::vector<uint8_t> written() const {
    write_model(path("small.weft"), weft::test::small_model());
    return read_bytes(path("small.weft"));
  }
  static DeployedModel parse(const std::vector<uint8_t>& bytes) { return parse_model(bytes, nullptr, "small.weft"); }
};

TEST_F(ModelFile, ComesBackAsItWas) {
  DeployedModel model = weft::test::small_model({1, 4});
  model.pictures = PictureInput{.channels = 1, .height = 2, .width = 3, .resize = 4, .mean = {0.25f}, .deviation = {2}};
  model.precision = DType::bf16;
  write_model(path("small.weft"), model);
  const DeployedModel read = read_model(path("small.weft"));
  EXPECT_EQ(read.name, "small");
  EXPECT_EQ(read.precision, DType::bf16);
  EXPECT_EQ(read.metadata, model.metadata);
  EXPECT_EQ(read.classes, model.classes);
  EXPECT_EQ(read.pictures, model.pictures);
  EXPECT_EQ(read.inputs, model.inputs);
  EXPECT_EQ(read.outputs, model.outputs);
  ASSERT_EQ(read.graphs.size(), 2U);
  EXPECT_EQ(read.graphs[1].batch, 4);
  EXPECT_EQ(read.graphs[1].text, model.graphs[1].text);
  EXPECT_EQ(read.constants, model.constants);
}

TEST_F(ModelFile, ConstantsLieInTheMappedFileWhereKernelsCanReadThem) {
  written();
  const DeployedModel read = read_model(path("small.weft"));
  for (const auto& [hash, constant] : read.constants)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(constant->tensor().data()) % static_cast<uintptr_t>(kAlignment), 0U);
}

TEST_F(ModelFile, IsToldByItsFirstBytes) {
  written();
  EXPECT_TRUE(is_model_file(path("small.weft")));
  write("other.weft", {'g', 'r', 'a', 'p', 'h'});
  EXPECT_FALSE(is_model_file(path("other.weft")));
  EXPECT_FALSE(is_model_file(path("missing.weft")));
}

TEST_F(ModelFile, EveryFlippedByteThatMattersIsFound) {
  const std::vector<uint8_t> bytes = written();
  const DeployedModel whole = parse(bytes);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<uint8_t> damaged = bytes;
    damaged[at] ^= 0x20;
    try {
      const DeployedModel read = parse(damaged);
      // Only what fills the file up to whole cache lines may change.
      EXPECT_TRUE(bytes[at] == 0 || bytes[at] == ' ') << "byte " << at;
      EXPECT_EQ(read.constants, whole.constants) << "byte " << at;
      EXPECT_EQ(read.graphs[0].text, whole.graphs[0].text) << "byte " << at;
      EXPECT_EQ(read.metadata, whole.metadata) << "byte " << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data) << "byte " << at << ": " << error.what();
    }
  }
}

TEST_F(ModelFile, EveryShorterFileIsRefused) {
  const std::vector<uint8_t> bytes = written();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(error_of(
                  [&] {
                    parse({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
                  },
                  ErrorKind::data),
              "no error")
        << size;
}

TEST_F(ModelFile, ALongerFileIsRefused) {
  std::vector<uint8_t> bytes = written();
  bytes.push_back(0);
  EXPECT_THAT(error_of([&] { parse(bytes); }, ErrorKind::data), HasSubstr("bytes follow its header, which names"));
}

TEST_F(ModelFile, AnotherFileIsRefusedWithWhatIsWanted) {
  EXPECT_THAT(error_of(
                  [&] {
                    parse({'P', 'K', 3, 4});
                  },
                  ErrorKind::data),
              HasSubstr("'small.weft' is no model that `weft compile` has written"));
}

TEST_F(ModelFile, PartsThatShareBytesAreRefused) {
  // Two graphs of the same text: the header of the second is made to point at the first.
  DeployedModel model = weft::test::small_model({1, 4});
  model.graphs[1].text = model.graphs[0].text;
  write_model(path("small.weft"), model);
  std::vector<uint8_t> bytes = read_bytes(path("small.weft"));
  std::string text(bytes.begin(), bytes.end());
  const size_t second = text.find("\"offset\": ", text.find("\"batch\": 4"));
  ASSERT_NE(second, std::string::npos);
  const size_t digits = second + std::strlen("\"offset\": "), end = text.find(',', digits);
  text.replace(digits, end - digits, std::string(end - digits - 1, ' ') + "0");
  const size_t length = std::stoul(text.substr(std::strlen("weft-model 1"), 13));
  const std::string header = text.substr(64, length);
  const std::string hash = to_string(hash128({reinterpret_cast<const std::byte*>(header.data()), header.size()}));
  text.replace(text.find(' ', text.find_first_not_of(' ', std::strlen("weft-model 1"))) + 1, hash.size(), hash);
  EXPECT_THAT(error_of(
                  [&] {
                    parse({text.begin(), text.end()});
                  },
                  ErrorKind::data),
              HasSubstr("a graph lies where another part of it is"));
}

TEST_F(ModelFile, ANewerFormatIsRefused) {
  std::vector<uint8_t> bytes = written();
  bytes[std::strlen("weft-model ")] = '2';
  EXPECT_THAT(error_of([&] { parse(bytes); }, ErrorKind::data), HasSubstr("has version 2 of the format"));
}

TEST_F(ModelFile, AMissingFileIsNamed) {
  EXPECT_THAT(error_of([&] { read_model(path("missing.weft")); }, ErrorKind::io), HasSubstr("missing.weft"));
}

}  // namespace
}  // namespace weft::engine
