#include "weft/comm/wait_meter.h"

#include <algorithm>

namespace weft::comm {

namespace {

constexpr double kShortestSleep = 1e-3;
constexpr double kSleepShare = 0.1;  // of what was waited already

}  // namespace

double sleep_in_wait(double waited_seconds, double most_seconds) {
  return std::min(std::max(kSleepShare * waited_seconds, kShortestSleep), most_seconds);
}

void WaitMeter::begin() { begin_ = last_look_ = clock_(); }

double WaitMeter::looked(double slept_seconds) {
  const double now = clock_(), seconds = now - last_look_;
  // Of a sleep that was cut short nobody knows by how much: it was waiting as far as it was meant to last.
  waited_ += seconds > slept_seconds + kLateSeconds ? slept_seconds : seconds;
  last_look_ = now;
  return now - begin_;
}

double WaitMeter::worked() {
  last_look_ = clock_();
  return last_look_ - begin_;
}

void WaitMeter::end() { looked(); }

}  // namespace weft::comm
