// Sizes and checksums of files, as ranks tell each other.
#pragma once

#include <map>
#include <string>

#include "weft/run/checkpoint/manifest.h"

namespace weft::run {

/// By name.
using FileRecords = std::map<std::string, FileRecord>;

std::string print(const FileRecords& files);
FileRecords parse_files(const std::string& text);

}  // namespace weft::run
