// Memory for what one step at a time makes, and a file for what finds no place there: executors that run in turn may
// share both, since nothing in an arena outlives its step but the outputs, which are read before another executor runs,
// and kept copies (graph/kept.h), which an executor makes again where another has run in between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "weft/device/memory_space.h"
#include "weft/device/offload_file.h"
#include "weft/tensor/tensor.h"

namespace weft {

class Arena {
 public:
  /// Of so many bytes, aligned to kAlignment.
  using Allocate = std::function<std::shared_ptr<std::byte>(int64_t bytes)>;

  explicit Arena(Allocate allocate = allocate_aligned) : allocate_(std::move(allocate)) {}
  /// In that memory.
  explicit Arena(std::shared_ptr<MemorySpace> memory)
      : Arena([memory = std::move(memory)](int64_t bytes) { return memory->allocate(bytes, "the arena"); }) {}
  /// It will have at least so many bytes. Nothing happens once the memory is there.
  void reserve(int64_t bytes) {
    if (memory_ == nullptr) bytes_ = std::max(bytes_, bytes);
  }
  int64_t bytes() const { return bytes_; }
  /// Makes the file, empty as yet; Error(io) as OffloadFile gives.
  void open_file(const std::string& directory) { file_ = std::make_shared<OffloadFile>(directory); }
  /// Null where none was opened.
  const std::shared_ptr<OffloadFile>& file() const { return file_; }
  /// Allocated at the first call; Error(io) where the system has none left.
  std::shared_ptr<std::byte> memory() {
    if (memory_ == nullptr) memory_ = allocate_(bytes_);
    return memory_;
  }
  /// Says who runs in the memory now; whether the same was the last to say so.
  bool take(const void* user) { return std::exchange(user_, user) == user; }

 private:
  Allocate allocate_;
  const void* user_ = nullptr;
  int64_t bytes_ = 0;
  std::shared_ptr<std::byte> memory_;
  std::shared_ptr<OffloadFile> file_;
};

}  // namespace weft
