// Appending to a log that others may read meanwhile: a record is there whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace weft {

/// At the end of the open file, in one write where it fits. Where it does not fit, what was written of it is cut off
/// again and Error(io) names the path and the system's reason. Allocates nothing where it succeeds.
void append_whole(int descriptor, std::string_view record, const std::filesystem::path& path);

/// What was appended survives a power cut. Error(io).
void sync_appended(int descriptor, const std::filesystem::path& path);

}  // namespace weft
