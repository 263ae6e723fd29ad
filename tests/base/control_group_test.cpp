// Control groups as the kernel shows them, in a given folder, and for real where this process may make one.
#include "weft/base/control_group.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/files_for_tests.h"
#include "weft/base/cores.h"
#include "weft/base/memory.h"

namespace weft {
namespace {

constexpr int64_t kMB = 1'000'000;

class ControlGroup : public FilesTest {
 protected:
  void file(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << content;
  }
  /// Of a process in the group /system.slice/job of version 2.
  void version_2(const std::string& group = "/system.slice/job") const {
    file("proc/self/cgroup", "0::" + group + "\n");
    file(
        "proc/self/mountinfo",
        "23 1 0:21 / / rw - ext4 /dev/sda rw\n31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    file("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:   12000000 kB\nHugetlb:         2000000 kB\n");
  }
  void version_1() const {
    file("proc/self/cgroup", "5:memory:/slurm/job_7/step_0\n4:cpu,cpuacct:/slurm/job_7\n1:name=systemd:/\n0::/\n");
    file("proc/self/mountinfo",
         "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
         "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
    file("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:   12000000 kB\n");
  }
};

TEST_F(ControlGroup, WithoutOneNothingIsLimited) {
  const ControlGroupLimits limits = control_group_limits(folder_);
  EXPECT_FALSE(limits.cores || limits.memory_bytes || limits.memory_left_bytes);
}

TEST_F(ControlGroup, Version2LimitsCoresByCpuMax) {
  version_2();
  file("sys/fs/cgroup/system.slice/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(control_group_limits(folder_).cores, 0.5);
  EXPECT_EQ(available_cores(folder_), 1) << "at least one";
}

TEST_F(ControlGroup, TheTightestOfAllGroupsCounts) {
  version_2();
  file("sys/fs/cgroup/system.slice/job/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/system.slice/job/memory.max", "4000000000\n");
  file("sys/fs/cgroup/system.slice/job/memory.current", "1000000000\n");
  file("sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
  file("sys/fs/cgroup/system.slice/memory.max", "6000000000\n");
  file("sys/fs/cgroup/system.slice/memory.current", "5500000000\n");
  file("sys/fs/cgroup/system.slice/memory.stat", "anon 1\ninactive_file 1000000000\n");
  const ControlGroupLimits limits = control_group_limits(folder_);
  EXPECT_EQ(limits.cores, 1.5);
  EXPECT_EQ(limits.memory_bytes, 4000 * kMB);
  EXPECT_EQ(limits.memory_left_bytes, 1500 * kMB) << "the outer group has less left";
  EXPECT_EQ(memory_limit_bytes(folder_), 4000 * kMB);
  EXPECT_EQ(available_memory_bytes(folder_), 1500 * kMB);
}

TEST_F(ControlGroup, AContainerSeesItsOwnGroupAsTheRoot) {
  version_2("/");
  file("sys/fs/cgroup/memory.max", "3000000000\n");
  file("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(control_group_limits(folder_).memory_bytes, 3000 * kMB);
  EXPECT_EQ(available_cores(folder_), 1);
}

TEST_F(ControlGroup, AMountMayShowAPartOfTheHierarchy) {
  version_2("/docker/abc");
  file("proc/self/mountinfo", "31 23 0:28 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  file("sys/fs/cgroup/memory.max", "3000000000\n");
  EXPECT_EQ(control_group_limits(folder_).memory_bytes, 3000 * kMB);
}

TEST_F(ControlGroup, Version1ReadsQuotaAndLimitOfNestedGroups) {
  version_1();
  const std::string memory = "sys/fs/cgroup/memory/", cpu = "sys/fs/cgroup/cpu,cpuacct/";
  file(memory + "memory.limit_in_bytes", "9223372036854771712\n");
  file(memory + "slurm/job_7/memory.limit_in_bytes", "2000000000\n");
  file(memory + "slurm/job_7/memory.usage_in_bytes", "700000000\n");
  file(memory + "slurm/job_7/memory.stat", "inactive_file 1\ntotal_inactive_file 200000000\n");
  file(memory + "slurm/job_7/step_0/memory.limit_in_bytes", "9223372036854771712\n");
  file(cpu + "cpu.cfs_quota_us", "-1\n");
  file(cpu + "cpu.cfs_period_us", "100000\n");
  file(cpu + "slurm/job_7/cpu.cfs_quota_us", "250000\n");
  file(cpu + "slurm/job_7/cpu.cfs_period_us", "100000\n");
  const ControlGroupLimits limits = control_group_limits(folder_);
  EXPECT_EQ(limits.cores, 2.5);
  EXPECT_EQ(limits.memory_bytes, 2000 * kMB);
  EXPECT_EQ(limits.memory_left_bytes, 1500 * kMB);
}

TEST_F(ControlGroup, MemoryOfHugePagesIsNotTheProgramsToTake) {
  version_2();
  EXPECT_EQ(memory_limit_bytes(folder_), int64_t{14'000'000} * 1024);
}

TEST_F(ControlGroup, NonsenseLimitsNothing) {
  version_2();
  file("proc/self/cgroup", "nonsense\n0::/system.slice/../../../etc\n");
  file("sys/fs/cgroup/cpu.max", "many few\n");
  file("sys/fs/cgroup/memory.max", "-7\n");
  const ControlGroupLimits limits = control_group_limits(folder_);
  EXPECT_FALSE(limits.cores || limits.memory_bytes || limits.memory_left_bytes);
}

/// A real group, of either version; skipped where this process may not make one.
class RealControlGroup : public testing::Test {
 protected:
  void make(const std::string& name, const std::string& parent, const std::string& file, const std::string& limit) {
    std::error_code code;
    // Where version 1 is mounted below, the folder of version 2 is an ordinary one.
    if (file.starts_with("memory.max") &&
        !std::filesystem::exists(std::filesystem::path(parent) / "cgroup.controllers", code))
      GTEST_SKIP() << parent << " is no hierarchy of version 2";
    group_ = std::filesystem::path(parent) / (name + "-" + std::to_string(getpid()));
    if (!std::filesystem::create_directory(group_, code)) GTEST_SKIP() << "no group can be made in " << parent;
    std::ofstream setting(group_ / file);
    if (!(setting << limit << std::flush)) GTEST_SKIP() << "'" << file << "' cannot be written in " << group_;
  }
  void TearDown() override {
    if (!group_.empty()) rmdir(group_.c_str());
  }
  /// What `measure` gives in a process of that group.
  int measured(const std::function<int()>& measure) const {
    const pid_t child = fork();
    if (child == 0) {
      std::ofstream members(group_ / "cgroup.procs");
      members << getpid() << std::flush;
      _exit(members ? measure() : 255);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::filesystem::path group_;
};

TEST_F(RealControlGroup, MemoryOfVersion1IsFound) {
  make("weft-test", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "104857600");
  if (IsSkipped()) return;
  EXPECT_EQ(measured([] { return static_cast<int>(memory_limit_bytes() >> 20); }), 100);
}

TEST_F(RealControlGroup, QuotaOfVersion1IsFound) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2)
    GTEST_SKIP() << "one core cannot become fewer";
  make("weft-test", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "100000");
  if (IsSkipped()) return;
  EXPECT_EQ(measured([] { return static_cast<int>(available_cores()); }), 1);
}

TEST_F(RealControlGroup, MemoryOfVersion2IsFound) {
  make("weft-test", "/sys/fs/cgroup", "memory.max", "104857600");
  if (IsSkipped()) return;
  EXPECT_EQ(measured([] { return static_cast<int>(memory_limit_bytes() >> 20); }), 100);
}

}  // namespace
}  // namespace weft
