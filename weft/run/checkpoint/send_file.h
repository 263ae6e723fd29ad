// A file of one rank's disk on the disks of others.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "weft/comm/communicator.h"
#include "weft/run/checkpoint/manifest.h"

namespace weft::run {

/// The source's file, in pieces, to all ranks; those that name a place write it there, under a temporary name until its
/// checksum is that of `record`. All ranks call it, with the same `source`, `record` and `what`, which names the
/// exchange in errors. SharedError(io) where the file is not as `record` says, or a rank cannot write.
void send_file(comm::Communicator& ranks, int source, const std::filesystem::path& from, const FileRecord& record,
               const std::optional<std::filesystem::path>& to, std::string_view what);

}  // namespace weft::run
