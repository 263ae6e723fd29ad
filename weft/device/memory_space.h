// The memory in which a device computes, for whoever keeps tensors there: the arena, the state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weft/tensor/tensor.h"

namespace weft {

class MemorySpace {
 public:
  virtual ~MemorySpace() = default;
  /// Whether host code may read and write it: then nothing is copied.
  virtual bool is_host() const = 0;
  /// Zeroed, aligned to kAlignment, given back with the last pointer to it. `what` is for messages: "state 'w'".
  /// Error(io) where there is none left.
  virtual std::shared_ptr<std::byte> allocate(int64_t bytes, const std::string& what) = 0;
  /// The same in the host's memory, such as the device copies fastest from and to.
  virtual std::shared_ptr<std::byte> allocate_on_host(int64_t bytes) { return allocate_aligned(bytes); }
  /// Both return when it is done, and are for what happens beside steps: in a step nodes copy (graph/space_copies.h).
  virtual void copy_in(std::byte* to, const void* from, int64_t bytes) = 0;
  virtual void copy_out(void* to, const std::byte* from, int64_t bytes) = 0;
};

/// The host's memory.
std::shared_ptr<MemorySpace> host_memory();

}  // namespace weft
