// How many cores this process may use.
#pragma once

#include <cstdint>
#include <filesystem>

namespace weft {

/// Of so many, or as many as its control groups give time for, rounded to the nearest whole number, where these are
/// fewer; at least one. `root` stands for "/", as in control_group.h.
int64_t granted_cores(int64_t allowed, const std::filesystem::path& root = "/");
/// The same of those of its affinity mask.
int64_t available_cores(const std::filesystem::path& root = "/");

}  // namespace weft
