// A command on the ranks that a launcher such as mpirun or srun has started, or in a process that is alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "weft/comm/communicator.h"
#include "weft/comm/mpi/session.h"

namespace weft::launch {

/// Of ranks that have found one of them to be gone: not the training has failed, it may go on without that one.
inline constexpr int kLostRankExitCode = 75;  // EX_TEMPFAIL of sysexits.h

/// Returns the exit code. Where there are several ranks each is given its part of the cores, what ends them all is said
/// once, and what ends one of them ends all, with its name. `work` gets null where the process is alone; its errors
/// come out then.
/// Error(usage) where srun has started several tasks that cannot find each other.
int on_launched_ranks(const std::function<int(comm::Communicator* ranks)>& work);

/// The same for a command that measures between ranks, and may compare with MPI itself; one rank will do. Error(usage)
/// where no launcher has started it.
int between_ranks(const std::string& command, const std::function<int(comm::MpiSession& session)>& work);

/// False in all but the first of the processes that a launcher has started: for messages from before they know each
/// other.
bool speaks_for_launched_ranks();

/// For lines to the user: the first rank says them, the others nothing.
std::function<void(const std::string& line)> note_of(const comm::Communicator* ranks);

/// Of a batch the samples of one of so many ranks. Error(usage), where they cannot share it alike, calls it `name`.
int64_t batch_of_rank(int64_t batch, int ranks, std::string_view name);

}  // namespace weft::launch
