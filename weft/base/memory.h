// How much memory this process may take: of the machine, what control groups and the process's own limits leave it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace weft {

/// Bytes that this process may use at most: the machine's memory without what is reserved for huge pages, the limits of
/// its control groups, or `ulimit -v`, whichever is least. `root` stands for "/", as in control_group.h.
int64_t memory_limit_bytes(const std::filesystem::path& root = "/");

/// Bytes that it may still take without swapping: what the system calls available, or what those limits leave.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");

/// Gives memory back to the system that was freed and that the C library keeps for later; takes a moment. Nothing where
/// the library has no such call.
void release_free_memory();

}  // namespace weft
