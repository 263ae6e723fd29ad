// What all kernels of one executor share when they run. A device with queues derives its own from it; on the CPU a
// kernel has done its work when it returns, and there is nothing to share.
#pragma once

#include <cstdint>
#include <cstring>

namespace weft {

class ExecutionContext {
 public:
  virtual ~ExecutionContext() = default;
  /// From one place of the device's memory to another, in order with the kernels.
  virtual void copy(void* to, const void* from, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }
  /// Until all that was begun is done, and what was copied to the host can be read there.
  virtual void wait() {}
};

}  // namespace weft
