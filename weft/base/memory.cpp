#include "weft/base/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace weft {

namespace {

/// The number behind a key at the beginning of a line; `fallback` where there is none.
int64_t number_of(const char* file, const std::string& key, int64_t fallback) {
  std::ifstream lines(file);
  std::string word;
  for (int64_t number = 0; lines >> word; lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n'))
    if (word == key && lines >> number) return number;
  return fallback;
}

int64_t number_in(const char* file, int64_t fallback) {
  std::ifstream content(file);
  int64_t number = 0;
  return content >> number ? number : fallback;
}

}  // namespace

int64_t available_memory_bytes() {
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  const int64_t available = number_of("/proc/meminfo", "MemAvailable:", 0) * 1024;
  const int64_t limit = number_in("/sys/fs/cgroup/memory.max", kUnlimited);  // "max" where there is no limit
  if (limit == kUnlimited) return available;
  // Files that were read count as used until their place is wanted.
  const int64_t used =
      number_in("/sys/fs/cgroup/memory.current", 0) - number_of("/sys/fs/cgroup/memory.stat", "inactive_file", 0);
  return std::max<int64_t>(0, std::min(available, limit - used));
}

}  // namespace weft
