#include "weft/device/offload_timeline.h"

#include <algorithm>

#include "weft/device/offload_file.h"

namespace weft {

OffloadTimeline::OffloadTimeline(const OffloadRates& rates, int threads) : rates_(rates), threads_(threads) {}

OffloadTimeline::Value& OffloadTimeline::at(size_t value) {
  if (value >= values_.size()) values_.resize(value + 1);
  return values_[value];
}

void OffloadTimeline::wait_until(double time) {
  if (time <= now_) return;
  waiting_seconds_ += time - now_;
  transfer_seconds_ += time - now_;
  now_ = time;
}

void OffloadTimeline::copy(int64_t bytes, double rate) {
  const double seconds = static_cast<double>(bytes) / rate;
  now_ += seconds;
  transfer_seconds_ += seconds;
}

void OffloadTimeline::store(size_t value, int64_t bytes) {
  Value& stored = at(value);
  stored = {.bytes = bytes, .cached = bytes};
  for (int64_t begin = 0; begin < bytes; begin += kOffloadPieceBytes) {
    const int64_t piece = std::min(kOffloadPieceBytes, bytes - begin);
    copy(piece, rates_.into_cache);
    disk_free_ = std::max(disk_free_, now_) + static_cast<double>(piece) / rates_.disk;
    while (!pending_.empty() && pending_bytes_ > kOffloadWindowBytes) settle_oldest();
    pending_.push_back({value, piece, disk_free_});
    pending_bytes_ += piece;
  }
}

/// What is on the disk leaves the cache.
void OffloadTimeline::settle_oldest() {
  const Pending oldest = pending_.front();
  pending_.pop_front();
  pending_bytes_ -= oldest.bytes;
  wait_until(oldest.written);
  at(oldest.value).cached -= oldest.bytes;
}

void OffloadTimeline::ask_ahead(size_t value) {
  Value& asked = at(value);
  if (asked.is_asked) return;
  asked.is_asked = true;
  asked.ready = now_;
  const int64_t missing = asked.bytes - asked.cached;
  if (missing == 0) return;
  disk_free_ = std::max(disk_free_, now_) + static_cast<double>(missing) / rates_.disk;
  asked.ready = disk_free_;
}

void OffloadTimeline::load(size_t value) {
  ask_ahead(value);
  wait_until(at(value).ready);
  copy(at(value).bytes, rates_.out_of_cache_per_thread * threads_);
}

}  // namespace weft
