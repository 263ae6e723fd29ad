// Memory that processes of one host share: a file without a name, which the peers open through /proc/PID/fd/N. Nothing
// is left behind, however the processes end, and the size of /dev/shm does not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace weft::comm {

/// Where a peer finds a memory file while its owner keeps it open.
struct MemoryFileAddress {
  int64_t process = 0;
  int64_t descriptor = -1;
  int64_t bytes = 0;
};

class MemoryFile {
 public:
  /// Of zeros. Error(io) with the system's reason.
  explicit MemoryFile(int64_t bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  MemoryFileAddress address() const;
  /// Mapped for reading and writing until its last owner is gone; the file may be closed before.
  std::shared_ptr<std::byte> map() const;

 private:
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

/// Maps a peer's. Error(io) where this process may not open it: another user's, or in a container of its own.
std::shared_ptr<std::byte> map_memory_file(const MemoryFileAddress& address);

}  // namespace weft::comm
