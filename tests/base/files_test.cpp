#include "weft/base/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "tests/support/files_for_tests.h"

namespace weft {
namespace {

class BaseFilesTest : public FilesTest {
 protected:
  std::string temporary_of(const std::string& name) { return path(name) + ".tmp-" + std::to_string(getpid()); }
};

TEST_F(BaseFilesTest, WrittenTextReadsBack) {
  write_atomically(path("a"), "line\n");
  EXPECT_EQ(read_text(path("a")), "line\n");
  EXPECT_EQ(read_bytes(path("a")), (Bytes{'l', 'i', 'n', 'e', '\n'}));
}

TEST_F(BaseFilesTest, LargeFilesReadWhole) {
  const Bytes content = [] {
    Bytes bytes(3'000'001);
    for (size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<uint8_t>(at * 31 >> 3);
    return bytes;
  }();
  write("a", content);
  EXPECT_EQ(read_bytes(path("a")), content);
  EXPECT_EQ(read_maybe_gzip(write_gzip("a.gz", content)), content);
}

TEST_F(BaseFilesTest, AnEmptyFileIsEmpty) {
  write("a", {});
  EXPECT_TRUE(read_text(path("a")).empty());
}

TEST_F(BaseFilesTest, WithoutCommitTheOldContentStaysAndNothingIsLeft) {
  write_atomically(path("a"), "old");
  {
    AtomicFile file(path("a"));
    file.write("new", 3);
  }
  EXPECT_EQ(read_text(path("a")), "old");
  EXPECT_FALSE(std::filesystem::exists(temporary_of("a")));
}

TEST_F(BaseFilesTest, CommitReplacesTheContent) {
  write_atomically(path("a"), "a longer old content");
  write_atomically(path("a"), "new");
  EXPECT_EQ(read_text(path("a")), "new");
  EXPECT_FALSE(std::filesystem::exists(temporary_of("a")));
}

TEST_F(BaseFilesTest, ASymbolicLinkStaysAndItsTargetIsWritten) {
  std::filesystem::create_directories(path("elsewhere"));
  write_atomically(path("elsewhere/a"), "old");
  std::filesystem::create_symlink("elsewhere/a", path("link"));
  std::filesystem::create_symlink("elsewhere/none yet", path("dangling"));
  write_atomically(path("link"), "new");
  write_atomically(path("dangling"), "first");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_TRUE(std::filesystem::is_symlink(path("dangling")));
  EXPECT_EQ(read_text(path("elsewhere/a")), "new");
  EXPECT_EQ(read_text(path("elsewhere/none yet")), "first");
}

TEST_F(BaseFilesTest, APipeGetsTheBytesAndStaysAPipe) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { std::getline(std::ifstream(path("pipe")), received); });
  write_atomically(path("pipe"), "through the pipe");
  reader.join();
  EXPECT_EQ(received, "through the pipe");
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
}

TEST_F(BaseFilesTest, APipeAmongTheFilesIsNotRead) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_error([&] { read_text(path("pipe")); }, ErrorKind::io, {"pipe': it is a pipe; give a file"});
  expect_error([&] { read_bytes("/dev/zero"); }, ErrorKind::io, {"'/dev/zero': it is a device"});
}

TEST_F(BaseFilesTest, APipeThatTheShellHasOpenedIsRead) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "given", 5), 5);
  close(ends[1]);
  EXPECT_EQ(read_text("/dev/fd/" + std::to_string(ends[0])), "given");
  close(ends[0]);
}

TEST_F(BaseFilesTest, AFullDiskIsAnErrorAndKeepsTheOldContent) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  write_atomically(path("a"), "old");
  std::filesystem::create_symlink("/dev/full", temporary_of("a"));  // every write there finds no space
  expect_error([&] { write_atomically(path("a"), "new"); }, ErrorKind::io,
               {"cannot write", path("a"), "No space left", "free some space"});
  EXPECT_EQ(read_text(path("a")), "old");
  EXPECT_FALSE(std::filesystem::exists(temporary_of("a")));
}

TEST_F(BaseFilesTest, AMissingFolderIsAnErrorOnWriting) {
  expect_error([&] { write_atomically(path("none/a"), "x"); }, ErrorKind::io,
               {"cannot write", "none/a", "check the path"});
}

TEST_F(BaseFilesTest, AMissingFileIsAnErrorOnReading) {
  expect_error([&] { read_text(path("none")); }, ErrorKind::io, {"cannot open", "none", "No such file"});
}

TEST_F(BaseFilesTest, AFolderCannotBeRead) {
  expect_error([&] { read_text(folder_); }, ErrorKind::io, {"cannot read", "Is a directory"});
}

TEST_F(BaseFilesTest, AFileCannotBeAFolder) {
  write("a", {1});
  expect_error([&] { make_directories(path("a/b")); }, ErrorKind::io, {"cannot create directory", "a/b"});
}

TEST_F(BaseFilesTest, FilesWithoutGzipMagicReadAsTheyAre) {
  write("a", {0x1f});
  EXPECT_EQ(read_maybe_gzip(path("a")), Bytes{0x1f});
}

TEST_F(BaseFilesTest, ALargeGzipIsReadAsItWas) {
  Bytes content(size_t{34} << 20);  // more than 32 MiB when packed, too: noise does not shrink
  uint32_t noise = 1;
  for (uint8_t& byte : content) byte = static_cast<uint8_t>((noise = noise * 1664525u + 1013904223u) >> 24);
  EXPECT_EQ(read_maybe_gzip(write_gzip("large.gz", content)), content);
}

TEST_F(BaseFilesTest, ATruncatedGzipIsAnError) {
  const std::string file = write_gzip("a.gz", Bytes(100'000, 7));
  for (const uintmax_t size : {std::filesystem::file_size(file) - 1, uintmax_t{12}, uintmax_t{2}}) {
    std::filesystem::resize_file(file, size);
    expect_error([&] { read_maybe_gzip(file); }, ErrorKind::data, {"a.gz", "damaged or truncated gzip"});
  }
}

TEST_F(BaseFilesTest, AWrongChecksumIsAnError) {
  Bytes content = read_bytes(write_gzip("a.gz", Bytes(1000, 7)));
  content[content.size() - 6] ^= 1;  // within the CRC
  write("a.gz", content);
  expect_error([&] { read_maybe_gzip(path("a.gz")); }, ErrorKind::data, {"damaged or truncated gzip"});
}

/// The bytes of two gzip members, one behind the other.
class TwoMembers : public BaseFilesTest {
 protected:
  TwoMembers() : file_(read_bytes(write_gzip("first.gz", first_))) {
    const Bytes second = read_bytes(write_gzip("second.gz", second_));
    file_.insert(file_.end(), second.begin(), second.end());
    both_.insert(both_.end(), second_.begin(), second_.end());
  }
  const Bytes first_ = Bytes(5000, 7), second_ = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Bytes both_ = first_, file_;
};

TEST_F(TwoMembers, AreReadAsOneFile) { EXPECT_EQ(read_maybe_gzip(write("a.gz", file_)), both_); }

TEST_F(TwoMembers, MayGoThroughZlibInSmallPieces) {
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{100}})
    EXPECT_EQ(read_maybe_gzip(write("a.gz", file_), piece), both_) << piece;
}

TEST_F(TwoMembers, ZerosBehindThemAreIgnored) {
  file_.resize(file_.size() + 512, 0);
  EXPECT_EQ(read_maybe_gzip(write("a.gz", file_)), both_);
}

TEST_F(TwoMembers, OtherBytesBehindThemAreAnError) {
  file_.resize(file_.size() + 3, 0);
  file_.push_back('x');
  expect_error([&] { read_maybe_gzip(write("a.gz", file_)); }, ErrorKind::data,
               {"a.gz", "4 bytes that are no gzip data"});
}

TEST_F(TwoMembers, ATruncatedSecondOneIsAnError) {
  file_.resize(file_.size() - 3);
  expect_error([&] { read_maybe_gzip(write("a.gz", file_)); }, ErrorKind::data,
               {"a.gz", "damaged or truncated gzip", "5009 bytes"});
}

}  // namespace
}  // namespace weft
