// Copies of a run directory on hosts that have disks of their own: who keeps one, and how all become alike before a run
// goes on. While it trains nothing is sent for states that every rank has whole: each keeper writes them. Parts of
// states that ranks share go from the host that wrote them to all others (checkpoint/write_parts.h).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "weft/comm/communicator.h"

namespace weft::run {

/// Whether this rank writes the run directory. The first rank does. With `copies`, so does the first rank of each host
/// that does not see the directory of a rank before it. All ranks call it; a null communicator is a process that is
/// alone. Error(io) where a host cannot write beside the directory.
bool keeps_directory(comm::Communicator* ranks, const std::filesystem::path& directory, bool copies);

/// Gives every keeper the newest checkpoint that is whole on any of them, the best one, and the other files of the host
/// that has the newest. All ranks call it before any of them opens the directory. Returns the lock on this keeper's
/// directory, under which it was read and changed; null elsewhere. `note` hears what is damaged, and who gets what.
/// Error(usage) where no keeper has a run, they have different ones, or another process trains there; Error(data) where
/// there are checkpoints and none is whole.
std::shared_ptr<void> copy_newest(comm::Communicator& ranks, const std::filesystem::path& directory, bool keeps,
                                  const std::function<void(const std::string&)>& note);

/// The first rank's file on all keepers, where it has one; after a change of which only that rank knows.
void copy_first_file(comm::Communicator& ranks, const std::filesystem::path& file, bool keeps);

}  // namespace weft::run
