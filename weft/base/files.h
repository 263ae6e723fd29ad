// Files that are whole or absent: every write goes to a temporary name, is synced, then renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The whole file; Error(io) names the path and the system's reason.
std::string read_text(const std::filesystem::path& path);
std::vector<uint8_t> read_bytes(const std::filesystem::path& path);

/// Asks the system to read a file ahead of its use; returns at once. What goes wrong is said when it is read.
void read_ahead(const std::filesystem::path& path);

/// The whole file, inflated where it starts with the gzip magic: all members, without zeros behind them. Error(data) on
/// a damaged stream or other bytes behind it. zlib takes and gives at most `piece_bytes` at once.
/// A large file is inflated twice, first to know its size: the memory is that of the content and the file.
std::vector<uint8_t> read_maybe_gzip(const std::filesystem::path& path, size_t piece_bytes = size_t{1} << 30);

/// Streams bytes into a temporary file beside `path`, or beside what a symbolic link there leads to; commit() syncs and
/// renames, else the destructor removes it. What can be no file, a pipe or a device, is written as the bytes come.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(const void* data, size_t bytes);
  void commit();
  /// Without waiting for the disk: a power cut may leave the file empty, or as it was.
  void commit_unsynced();
  /// Of what has been written so far.
  uint64_t bytes() const { return bytes_; }
  uint32_t checksum() const { return checksum_; }

 private:
  void put_in_place(bool waits_for_disk);
  std::filesystem::path path_, target_, temporary_;
  bool direct_ = false;
  int descriptor_ = -1;
  uint64_t bytes_ = 0;
  uint32_t checksum_ = 0;
};

/// CRC-32 (that of zlib and PNG) of bytes that follow those which gave `previous`.
uint32_t crc32_of(const void* data, size_t bytes, uint32_t previous = 0);

/// True for the temporary file of an AtomicFile of one of these names, whose process was killed or is at it still.
bool is_temporary(const std::filesystem::path& path, std::span<const std::string_view> names);
/// Removes such files in a directory in which no other process writes now.
void remove_temporaries(const std::filesystem::path& directory, std::span<const std::string_view> names);

void write_atomically(const std::filesystem::path& path, std::string_view content);
/// Without waiting for the disk: a power cut may leave the file empty, or as it was.
void replace_file(const std::filesystem::path& path, std::string_view content);

/// Waits until the file's content is on the disk.
void sync_file(const std::filesystem::path& path);
/// Syncs the directory entry itself, so that a rename in it survives a power cut.
void sync_directory(const std::filesystem::path& directory);

/// Creates the directory and its parents; Error(io) with the reason.
void make_directories(const std::filesystem::path& directory);

}  // namespace weft
