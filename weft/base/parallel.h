// Fork-join over a fixed number of threads. OpenMP, because oneDNN uses it too: one pool for both, so
// that their threads never fight for cores. The split depends on (count, threads) only: results are reproducible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#if defined(_OPENMP)
#include <omp.h>
#else
#include <thread>
#include <vector>
#endif

namespace weft {

/// The half-open range of `count` items which part `index` of `parts` takes; sizes differ by at most one.
inline std::pair<int64_t, int64_t> split_range(int64_t count, int index, int parts) {
  const int64_t base = count / parts, rest = count % parts;
  const int64_t begin = base * index + std::min<int64_t>(index, rest);
  return {begin, begin + base + (index < rest ? 1 : 0)};
}

/// Calls body(part, parts) for each part, on a thread of its own of the `threads` that a step has, and waits for all.
/// The body must not throw. Runs inline where there is one part. The team always has all `threads`, of which some may
/// have nothing to do: GNU's OpenMP ends those that a smaller team leaves over and makes new ones for the next larger.
/// Without OpenMP each call makes its threads anew: slow, but a thread sanitizer, which cannot see OpenMP's
/// synchronisation, understands it.
template <typename Body>
void parallel_run(int threads, int parts, Body&& body) {
  parts = std::min(parts, threads);
  if (parts <= 1) {
    body(0, 1);
    return;
  }
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
  {
    const int index = omp_get_thread_num(), total = std::min(parts, omp_get_num_threads());
    if (index < total) body(index, total);
  }
#else
  std::vector<std::jthread> others;
  for (int index = 1; index < parts; ++index) others.emplace_back([&body, index, parts] { body(index, parts); });
  body(0, parts);
#endif
}

/// Calls body(begin, end) on disjoint ranges that cover [0, count); ranges smaller than `grain` are not split off.
template <typename Body>
void parallel_for(int threads, int64_t count, int64_t grain, Body&& body) {
  const int64_t useful = std::max<int64_t>(1, count / std::max<int64_t>(1, grain));
  const int parts = static_cast<int>(std::min<int64_t>(threads, useful));
  parallel_run(threads, parts, [&](int index, int total) {
    const auto [begin, end] = split_range(count, index, total);
    if (begin < end) body(begin, end);
  });
}

}  // namespace weft
