// How long a step waits for the file of what it keeps outside memory: the processor copies to and from the system's
// cache, and the disk works beside it. Follows what OffloadFile does, without a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace weft {

/// Bytes per second.
struct OffloadRates {
  double disk = 1e9;  // each way
  // Of the copies into the cache, which one thread makes, and out of it, which all share: as docs/memory.md measured
  // them on ext4. They are work of the processor and the memory, in which machines differ less than in their disks.
  double into_cache = 5.5e9;
  double out_of_cache_per_thread = 1.75e9;
};

/// Times run from 0, in the order of the calls. A value is known by its index.
class OffloadTimeline {
 public:
  OffloadTimeline(const OffloadRates& rates, int threads);

  void compute(double seconds) { now_ += seconds; }
  void store(size_t value, int64_t bytes);
  void ask_ahead(size_t value);
  void load(size_t value);

  double now() const { return now_; }
  /// Of now(), what stores and loads took: copies, and waiting for the disk.
  double transfer_seconds() const { return transfer_seconds_; }
  /// Of that, the waiting.
  double waiting_seconds() const { return waiting_seconds_; }

 private:
  struct Value {
    int64_t bytes = 0, cached = 0;
    double ready = 0;  // when what is not cached has been read, if it was asked for
    bool is_asked = false;
  };
  struct Pending {
    size_t value = 0;
    int64_t bytes = 0;
    double written = 0;  // when it is on the disk
  };

  void wait_until(double time);
  void copy(int64_t bytes, double rate);
  void settle_oldest();
  Value& at(size_t value);

  const OffloadRates rates_;
  const int threads_;
  double now_ = 0, disk_free_ = 0, transfer_seconds_ = 0, waiting_seconds_ = 0;
  std::vector<Value> values_;
  std::deque<Pending> pending_;  // the oldest first
  int64_t pending_bytes_ = 0;
};

}  // namespace weft
