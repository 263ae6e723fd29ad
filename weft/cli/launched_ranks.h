// A command on the ranks that a launcher such as mpirun or srun has started, or in a process that is alone.
#pragma once

#include <functional>

#include "weft/comm/communicator.h"

namespace weft::cli {

/// Returns the exit code. Where there are several ranks each is given its part of the cores, what ends them all is said
/// once, and what ends one of them ends all, with its name. `work` gets null where the process is alone; its errors
/// come out then.
int on_launched_ranks(const std::function<int(comm::Communicator* ranks)>& work);

}  // namespace weft::cli
