// The clock by which weft measures how long things take.
#pragma once

#include <chrono>

namespace weft {

/// Seconds of a clock that only goes forward.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace weft
