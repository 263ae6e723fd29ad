// How ranks of one host wake each other: a counter in shared memory that its owner looks at while it is awake and
// sleeps on (futex) when nothing comes.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::comm {

/// In zeroed memory that processes share.
struct alignas(64) Doorbell {
  std::atomic<uint32_t> rings;
  std::atomic<uint32_t> sleepers;
  static_assert(std::atomic<uint32_t>::is_always_lock_free);

  void ring();
  uint32_t listen() const { return rings.load(std::memory_order_acquire); }
  /// Returns when it was rung since `heard`, or after the time. By its owner's threads only.
  void sleep(uint32_t heard, double seconds);
};

}  // namespace weft::comm
