// Progress of work that has no steps to count: lines for the user, but only now and then.
#pragma once

#include <functional>
#include <string>
#include <utility>

namespace weft {

/// Passes a line on to `say` where so many seconds have gone by since the last one, or since this call. `clock`: in
/// seconds.
inline std::function<void(const std::string&)> now_and_then(std::function<void(const std::string&)> say, double seconds,
                                                            std::function<double()> clock) {
  return [say = std::move(say), seconds, last = clock(), clock](const std::string& line) mutable {
    const double now = clock();
    if (now - last < seconds) return;
    last = now;
    say(line);
  };
}

inline constexpr double kSecondsBetweenLines = 5;

}  // namespace weft
