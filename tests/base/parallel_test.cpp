#include "weft/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace weft {
namespace {

TEST(SplitRange, CoversEverythingWithSizesThatDifferByOneAtMost) {
  for (const int64_t count : {0, 1, 5, 16, 17, 1000})
    for (const int parts : {1, 2, 3, 16}) {
      int64_t expected = 0;
      for (int part = 0; part < parts; ++part) {
        const auto [begin, end] = split_range(count, part, parts);
        EXPECT_EQ(begin, expected);
        EXPECT_GE(end - begin, count / parts);
        EXPECT_LE(end - begin, count / parts + 1);
        expected = end;
      }
      EXPECT_EQ(expected, count);
    }
}

TEST(ParallelFor, TouchesEachItemOnce) {
  for (const int threads : {1, 2, 4}) {
    std::vector<std::atomic<int>> touched(1003);
    parallel_for(threads, 1003, 10, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) ++touched[static_cast<size_t>(at)];
    });
    for (const auto& count : touched) EXPECT_EQ(count, 1);
  }
}

TEST(ParallelFor, DoesNotSplitBelowTheGrain) {
  std::atomic<int> calls = 0;
  parallel_for(8, 10, 100, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(ParallelFor, DoesNotCallTheBodyForNoItems) {
  parallel_for(4, 0, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ParallelRun, CallsOncePerPart) {
  for (const int threads : {3, 5}) {
    std::vector<std::atomic<int>> calls(3);
    parallel_run(threads, 3, [&](int index, int total) {
      EXPECT_EQ(total, 3);
      ++calls[static_cast<size_t>(index)];
    });
    for (const auto& count : calls) EXPECT_EQ(count, 1) << threads;
  }
}

TEST(ParallelRun, HasNoMorePartsThanThreads) {
  std::atomic<int> calls = 0;
  parallel_run(2, 5, [&](int, int total) {
    EXPECT_EQ(total, 2);
    ++calls;
  });
  EXPECT_EQ(calls, 2);
}

#if defined(_OPENMP)
/// The system's numbers of this process's threads.
std::set<std::string> thread_numbers() {
  std::set<std::string> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    numbers.insert(entry.path().filename().string());
  return numbers;
}

// A thread that ends and one that is made take some 50 microseconds of every loop.
TEST(ParallelFor, LoopsOfAllSizesRunOnTheSameThreads) {
  parallel_run(4, 4, [](int, int) {});
  const std::set<std::string> before = thread_numbers();
  EXPECT_GE(before.size(), 4u);
  for (const int64_t items : {1, 2, 3, 4, 2, 100, 3, 1, 4}) {
    parallel_for(4, items, 1, [](int64_t, int64_t) {});
    parallel_run(4, static_cast<int>(items), [](int, int) {});
  }
  parallel_run(4, 4, [](int, int) {});
  EXPECT_EQ(thread_numbers(), before);
}
#endif

}  // namespace
}  // namespace weft
