// A file as bytes in memory, read by the system as they are touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace weft {

/// Maps the whole file for reading while it lives. What is read of it later is what the file holds then: a file that is
/// cut shorter meanwhile ends the process, as a file of a running program would.
class MappedFile {
 public:
  /// Error(io) names the path and the system's reason.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return bytes_; }
  /// Asks the system to read this part ahead; returns at once.
  void will_need(size_t offset, size_t count) const;
  /// Gives back the memory of all whole pages of this part of the file; they are read again where they are touched.
  /// Nothing where the bytes are not of the file.
  void drop(std::span<const std::byte> part) const;

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace weft
