// The file of what a step keeps outside memory: one without a name, which the system removes with the process that
// made it, however that ends. Little of it stays in the system's cache: what is written is sent to the disk at once
// and dropped from the cache when it is there, what is read is asked for ahead and dropped after reading.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/graph/offloaded.h"

namespace weft {

/// Bytes on their way to the disk, or asked for ahead: what the cache holds of the file at most, besides a value that
/// is larger.
inline constexpr int64_t kOffloadWindowBytes = 64 << 20;
/// Written before the disk is told to begin.
inline constexpr int64_t kOffloadPieceBytes = 8 << 20;

class OffloadFile {
 public:
  /// Error(io) where no file can be made in the directory.
  explicit OffloadFile(std::string directory);
  ~OffloadFile();
  OffloadFile(const OffloadFile&) = delete;
  OffloadFile& operator=(const OffloadFile&) = delete;

  /// Takes the space on the disk; Error(io) where it has less, or the system allows no file of that size.
  void reserve(int64_t bytes);
  int64_t bytes() const { return bytes_; }
  const std::string& directory() const { return directory_; }
  /// Whether the directory lies in memory itself (tmpfs), so that the file saves none.
  bool is_in_memory() const;

  /// `offset` is a multiple of kFileBlockBytes; whole blocks are written. Waits only for what exceeds the window.
  void write(int64_t offset, const std::byte* data, int64_t bytes);
  /// The copy out of the system's cache is shared by the threads.
  void read(int64_t offset, std::byte* data, int64_t bytes, int threads = 1);
  /// Asks the system to begin reading; returns at once.
  void read_ahead(int64_t offset, int64_t bytes);

 private:
  struct Range {
    int64_t offset = 0, bytes = 0;
  };

  int get(int64_t offset, std::byte* data, int64_t bytes) const noexcept;
  void put(int64_t offset, const std::byte* data, int64_t bytes);
  void sync(const Range& range, unsigned flags);
  void settle_oldest();
  [[noreturn]] void fail_at(const char* doing, int code) const;

  std::string directory_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
  std::array<std::byte, kFileBlockBytes> last_block_ = {};
  // What is on its way to the disk, the oldest first, in a ring.
  std::array<Range, 256> pending_ = {};
  size_t first_pending_ = 0, pending_count_ = 0;
  int64_t pending_bytes_ = 0;
};

}  // namespace weft
