// What the control groups of this process leave it: containers, Slurm jobs and systemd units limit processors and
// memory that way. Reads versions 1 and 2 (Linux, Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst), and all
// groups from the process's own to the outermost that it sees: the tightest counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace weft {

struct ControlGroupLimits {
  std::optional<double> cores;               // processor time per time: cpu.max, cpu.cfs_quota_us
  std::optional<int64_t> memory_bytes;       // memory.max, memory.limit_in_bytes
  std::optional<int64_t> memory_left_bytes;  // of that; files that were read count as free until their place is wanted
};

/// `root` stands for "/": below it, the kernel's files proc/self/cgroup, proc/self/mountinfo and those of the groups.
/// What cannot be read limits nothing.
ControlGroupLimits control_group_limits(const std::filesystem::path& root = "/");

}  // namespace weft
