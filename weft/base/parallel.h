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

/// Calls body(thread_index, thread_count) once on each of `threads` threads and waits for all.
/// The body must not throw. Runs inline where threads <= 1. Without OpenMP each call makes its threads anew: slow, but
/// a thread sanitizer, which cannot see OpenMP's synchronisation, understands it.
template <typename Body>
void parallel_run(int threads, Body&& body) {
  if (threads <= 1) {
    body(0, 1);
    return;
  }
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
  body(omp_get_thread_num(), omp_get_num_threads());
#else
  std::vector<std::jthread> others;
  for (int index = 1; index < threads; ++index) others.emplace_back([&body, index, threads] { body(index, threads); });
  body(0, threads);
#endif
}

/// Calls body(begin, end) on disjoint ranges that cover [0, count); ranges smaller than `grain` are not split off.
template <typename Body>
void parallel_for(int threads, int64_t count, int64_t grain, Body&& body) {
  const int64_t useful = std::max<int64_t>(1, count / std::max<int64_t>(1, grain));
  const int parts = static_cast<int>(std::min<int64_t>(threads, useful));
  parallel_run(parts, [&](int index, int total) {
    const auto [begin, end] = split_range(count, index, total);
    if (begin < end) body(begin, end);
  });
}

}  // namespace weft
