// What a rank takes of its host: ranks of one host divide its cores and its memory among themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft::comm {

/// The cores, of those that all ranks of a host may use, that are this one's; where there are fewer cores than ranks
/// some share one.
std::vector<int> cores_of_rank(const std::vector<int>& cores, int local_rank, int ranks_of_host);

/// What is known of how a launcher has placed the ranks of one host.
struct Placing {
  std::vector<std::vector<int>> cores;   // that each of them may use now, by local rank
  std::vector<int> launcher_cores = {};  // that their launcher may use; empty: not known, or theirs
  bool bound_by_default = false;         // the launcher binds ranks to cores though nobody has asked for that
};

/// The cores that a rank is to use. Where ranks are bound to cores of their own, as by Slurm or on request, those;
/// where all may use the same, or Open MPI has bound them by default, which gives each of few one core alone, a part
/// each.
std::vector<int> choose_cores(const Placing& placing, int local_rank);

/// Lets this thread, and those that it starts from now on, run on the cores that are this rank's. Every rank calls it.
/// Null: nothing happens.
void take_cores(comm::Communicator* ranks);

/// Cores that the ranks of this host have together, each once; null: those of this process. A rank that has taken its
/// own sees no others by itself.
int64_t cores_of_host(const comm::Communicator* ranks);

/// The least of what the ranks have cores for: all use as many threads, so that they have the same plan.
int64_t common_threads(comm::Communicator* ranks, int64_t threads);

}  // namespace weft::comm
