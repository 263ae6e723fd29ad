// Memory for what one step at a time makes: executors that run in turn may share it, since nothing in an arena outlives
// its step but the outputs, which are read before another executor runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weft/tensor/tensor.h"

namespace weft {

class Arena {
 public:
  /// It will have at least so many bytes. Nothing happens once the memory is there.
  void reserve(int64_t bytes) {
    if (memory_ == nullptr) bytes_ = std::max(bytes_, bytes);
  }
  int64_t bytes() const { return bytes_; }
  /// Allocated at the first call; Error(io) where the system has none left.
  std::shared_ptr<std::byte> memory() {
    if (memory_ == nullptr) memory_ = allocate_aligned(bytes_);
    return memory_;
  }

 private:
  int64_t bytes_ = 0;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace weft
