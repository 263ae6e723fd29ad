// Copies of a run directory on hosts that have disks of their own: who keeps one, and how all become alike before a run
// goes on. While it trains nothing is sent for them: every rank has the whole state, and each keeper writes it.
#pragma once

#include <filesystem>

#include "weft/comm/communicator.h"

namespace weft::run {

/// Whether this rank writes the run directory. The first rank does. With `copies`, so does the first rank of each host
/// that does not see the directory of a rank before it. All ranks call it; a null communicator is a process that is
/// alone. Error(io) where a host cannot write beside the directory.
bool keeps_directory(comm::Communicator* ranks, const std::filesystem::path& directory, bool copies);

/// Gives every keeper what the directory with the newest whole checkpoint holds: its files, its newest and its best
/// checkpoint. All ranks call it before any of them opens the directory. Error(usage) where no keeper has a run
/// directory, Error(data) where there are checkpoints and none is whole.
void copy_newest(comm::Communicator& ranks, const std::filesystem::path& directory, bool keeps);

}  // namespace weft::run
