#include "weft/program/process_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace weft::train {

namespace {

/// A line such as "VmHWM:     1234 kB" of /proc/self/status.
int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::stoll(line.substr(key.size())) * 1024;
  return 0;
}

}  // namespace

int64_t resident_bytes() { return status_bytes("VmRSS:"); }
int64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

void reset_peak_resident_bytes() {
  std::ofstream clear("/proc/self/clear_refs");  // "5": reset the high-water mark, proc(5)
  clear << "5";
}

int64_t memory_limit_bytes() {
  int64_t limit = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::ifstream group("/sys/fs/cgroup/memory.max");  // "max" where there is no limit
  int64_t group_limit = 0;
  if (group >> group_limit && group_limit > 0) limit = std::min(limit, group_limit);
  return limit;
}

}  // namespace weft::train
