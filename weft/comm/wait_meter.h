// How long a rank waits for others, as it sees it itself. A rank that is stopped, or gets no core, while it waits
// stands still as it would while it computes: its looks for what it awaits come late, and what they are late by is no
// waiting.
#pragma once

#include <functional>
#include <utility>

#include "weft/base/clock.h"

namespace weft::comm {

/// How long to sleep, at most, before the next look of a wait that took so long already: a standstill in a sleep shows
/// only as far as it is longer than the sleep. A thousand looks per second at first, and few in a long wait.
double sleep_in_wait(double waited_seconds, double most_seconds);

/// One per thread that waits.
class WaitMeter {
 public:
  /// By which a look may be late: what another process gets of a core at a time, on a machine that has work for all.
  static constexpr double kLateSeconds = 4e-3;

  explicit WaitMeter(std::function<double()> clock = weft::steady_seconds) : clock_(std::move(clock)) {}

  void begin();
  /// After a look that found nothing, or a sleep of at most so long. Between two calls there may be many quick looks.
  /// Returns how long this wait took already.
  double looked(double slept_seconds = 0);
  /// What was done since the last look was work. Returns as looked() does.
  double worked();
  void end();

  /// In all waits, without standstills and work.
  double waited_seconds() const { return waited_; }

 private:
  const std::function<double()> clock_;
  double begin_ = 0, last_look_ = 0, waited_ = 0;
};

}  // namespace weft::comm
