// A command on the ranks that a launcher such as mpirun or srun has started, or in a process that is alone.
#pragma once

#include <functional>

#include "weft/comm/communicator.h"

namespace weft::cli {

/// Of ranks that have found one of them to be gone: not the training has failed, it may go on without that one.
inline constexpr int kLostRankExitCode = 75;  // EX_TEMPFAIL of sysexits.h

/// Returns the exit code. Where there are several ranks each is given its part of the cores, what ends them all is said
/// once, and what ends one of them ends all, with its name. `work` gets null where the process is alone; its errors
/// come out then.
/// Error(usage) where srun has started several tasks that cannot find each other.
int on_launched_ranks(const std::function<int(comm::Communicator* ranks)>& work);

/// False in all but the first of the processes that a launcher has started: for messages from before they know each
/// other.
bool speaks_for_launched_ranks();

}  // namespace weft::cli
