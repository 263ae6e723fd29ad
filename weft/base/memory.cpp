#include "weft/base/memory.h"

#include <sys/resource.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "weft/base/control_group.h"
#include "weft/base/kernel_files.h"

namespace weft {

namespace {

/// In bytes, of a file with lines such as "MemAvailable:   1234 kB"; 0 where it says nothing.
int64_t bytes_of(const std::filesystem::path& file, const std::string& key) {
  return 1024 * number_behind(file, key).value_or(0);
}

/// Of the address space, which `ulimit -v` and batch systems limit.
std::optional<int64_t> address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int64_t>::max()));
}

}  // namespace

int64_t memory_limit_bytes(const std::filesystem::path& root) {
  const std::filesystem::path info = root / "proc/meminfo";
  int64_t limit = bytes_of(info, "MemTotal:") - bytes_of(info, "Hugetlb:");
  limit = std::min(limit, control_group_limits(root).memory_bytes.value_or(limit));
  return std::min(limit, address_space_limit().value_or(limit));
}

int64_t available_memory_bytes(const std::filesystem::path& root) {
  int64_t available = bytes_of(root / "proc/meminfo", "MemAvailable:");
  available = std::min(available, control_group_limits(root).memory_left_bytes.value_or(available));
  if (const std::optional<int64_t> limit = address_space_limit())
    available = std::min(available, *limit - bytes_of(root / "proc/self/status", "VmSize:"));
  return std::max<int64_t>(0, available);
}

void release_free_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace weft
