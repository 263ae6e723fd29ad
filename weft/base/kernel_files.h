// Numbers in the kernel's text files, such as /proc/meminfo and memory.stat.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace weft {

/// The number behind a key at the beginning of a line: of "VmHWM:     1234 kB" 1234. nullopt where there is none.
std::optional<int64_t> number_behind(const std::filesystem::path& file, const std::string& key);

}  // namespace weft
