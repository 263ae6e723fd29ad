#include "weft/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>

#include "weft/base/control_group.h"

namespace weft {

int64_t granted_cores(int64_t allowed, const std::filesystem::path& root) {
  const double granted = control_group_limits(root).cores.value_or(static_cast<double>(allowed));
  return std::clamp<int64_t>(std::llround(granted), 1, std::max<int64_t>(1, allowed));
}

int64_t available_cores(const std::filesystem::path& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return granted_cores(static_cast<int64_t>(CPU_COUNT(&set)), root);
}

}  // namespace weft
