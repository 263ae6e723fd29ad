// How long work takes, for what measures links and memory.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

namespace weft::comm {

inline double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The least of some rounds: others may be using the machine.
inline double least_seconds(int rounds, const std::function<void()>& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) least = std::min(least, seconds_of(work));
  return least;
}

}  // namespace weft::comm
