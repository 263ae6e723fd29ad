#include "weft/base/pin_threads.h"

#include <sched.h>

#include "weft/base/parallel.h"

namespace weft {

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

bool pin_this_thread(int core) {
  if (core < 0 || core >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

void pin_team(int threads, const std::vector<int>& cores) {
  if (cores.empty()) return;
  parallel_run(threads, threads,
               [&](int index, int) { pin_this_thread(cores[static_cast<size_t>(index) % cores.size()]); });
}

}  // namespace weft
