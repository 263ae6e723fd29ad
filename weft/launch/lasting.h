// How long something has lasted, by the looks of a process that may itself have to wait for a core.
#pragma once

#include <algorithm>
#include <chrono>

namespace weft::launch {

/// A look that comes late counts as one turn: where this process stood still, whom it looks at stood still too, and is
/// not to blame.
class Lasting {
 public:
  using Clock = std::chrono::steady_clock;

  /// `turn`: the longest time between two looks that counts in full.
  explicit Lasting(Clock::duration turn) : turn_(turn) {}

  /// Whether it is so now.
  void look(bool lasts, Clock::time_point now) {
    time_ = lasts && was_so_ ? time_ + std::min(now - last_, turn_) : Clock::duration::zero();
    was_so_ = lasts;
    last_ = now;
  }
  /// Since the first look of those in a row that found it so.
  Clock::duration time() const { return time_; }

 private:
  const Clock::duration turn_;
  Clock::time_point last_;
  Clock::duration time_ = Clock::duration::zero();
  bool was_so_ = false;
};

}  // namespace weft::launch
