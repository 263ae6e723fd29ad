#include "weft/base/control_group.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "weft/base/kernel_files.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

/// A mounted hierarchy of groups, and the group of this process in it.
struct Hierarchy {
  bool is_version_2 = false;
  fs::path mount_point;     // below the given root
  fs::path group;           // relative to the mount point
  std::string controllers;  // version 1: ",cpu,cpuacct,"
  bool controls(const std::string& name) const {
    return is_version_2 || controllers.find("," + name + ",") != std::string::npos;
  }
};

std::string with_commas(const std::string& list) { return "," + list + ","; }

/// A line of proc/self/cgroup: "4:memory:/jobs/7", "0::/user.slice".
struct Membership {
  std::string controllers, path;
};

std::vector<Membership> read_memberships(const fs::path& root) {
  std::vector<Membership> memberships;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    memberships.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return memberships;
}

/// The group's path below the mount point: a mount may show a part of the hierarchy only, that below `mounted`.
fs::path below_mount(const std::string& group, const std::string& mounted) {
  const fs::path relative = fs::path(group).lexically_relative(mounted);
  // A container may see its own group as the root of the mount, and be told the path outside of it.
  if (relative.empty() || relative.begin()->string() == "..") return {};
  return relative == "." ? fs::path() : relative;
}

/// Of proc/self/mountinfo: "33 31 0:30 MOUNTED POINT options - cgroup device superoptions" (proc(5)).
std::vector<Hierarchy> read_hierarchies(const fs::path& root) {
  const std::vector<Membership> memberships = read_memberships(root);
  std::vector<Hierarchy> hierarchies;
  std::ifstream lines(root / "proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string skipped, mounted, point, kind, device, options;
    before >> skipped >> skipped >> skipped >> mounted >> point;
    after >> kind >> device >> options;
    if (kind != "cgroup" && kind != "cgroup2") continue;
    Hierarchy hierarchy{.is_version_2 = kind == "cgroup2",
                        .mount_point = root / fs::path(point).relative_path(),
                        .group = {},
                        .controllers = with_commas(options)};
    for (const Membership& membership : memberships) {
      const size_t end = membership.controllers.find(',');
      const bool is_own =
          hierarchy.is_version_2
              ? membership.controllers.empty()
              : !membership.controllers.empty() &&
                    hierarchy.controllers.find(with_commas(membership.controllers.substr(0, end))) != std::string::npos;
      if (is_own) hierarchy.group = below_mount(membership.path, mounted);
    }
    hierarchies.push_back(std::move(hierarchy));
  }
  return hierarchies;
}

/// The first number of a file; nullopt for "max", and where there is no such file.
std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream content(path);
  int64_t number = 0;
  if (content >> number) return number;
  return std::nullopt;
}

template <typename T>
void tighten(std::optional<T>& limit, T value) {
  limit = std::min(limit.value_or(value), value);
}

void add_cores(ControlGroupLimits& limits, const fs::path& group, bool is_version_2) {
  std::optional<int64_t> quota, period;
  if (is_version_2) {
    std::ifstream content(group / "cpu.max");  // "50000 100000", or "max 100000"
    int64_t first = 0, second = 0;
    if (content >> first >> second) quota = first, period = second;
  } else {
    quota = number_in(group / "cpu.cfs_quota_us");  // -1: no limit
    period = number_in(group / "cpu.cfs_period_us");
  }
  if (quota && period && *quota > 0 && *period > 0)
    tighten(limits.cores, static_cast<double>(*quota) / static_cast<double>(*period));
}

void add_memory(ControlGroupLimits& limits, const fs::path& group, bool is_version_2) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;  // version 1 says "no limit" by a number near 2^63
  const std::optional<int64_t> most = number_in(group / (is_version_2 ? "memory.max" : "memory.limit_in_bytes"));
  if (!most || *most < 0 || *most >= kNoLimit) return;
  const int64_t used = number_in(group / (is_version_2 ? "memory.current" : "memory.usage_in_bytes")).value_or(0);
  const int64_t files =
      number_behind(group / "memory.stat", is_version_2 ? "inactive_file" : "total_inactive_file").value_or(0);
  tighten(limits.memory_bytes, *most);
  tighten(limits.memory_left_bytes, std::max<int64_t>(0, *most - std::max<int64_t>(0, used - files)));
}

}  // namespace

ControlGroupLimits control_group_limits(const fs::path& root) {
  ControlGroupLimits limits;
  for (const Hierarchy& hierarchy : read_hierarchies(root)) {
    fs::path group = hierarchy.mount_point;
    const auto add = [&] {
      if (hierarchy.controls("cpu")) add_cores(limits, group, hierarchy.is_version_2);
      if (hierarchy.controls("memory")) add_memory(limits, group, hierarchy.is_version_2);
    };
    add();
    for (const fs::path& part : hierarchy.group) {
      group /= part;
      add();
    }
  }
  return limits;
}

}  // namespace weft
