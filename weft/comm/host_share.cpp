#include "weft/comm/host_share.h"

#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "weft/base/cores.h"
#include "weft/base/parallel.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::comm {

namespace {

/// Of a process, 0: this thread. Empty where the system does not say.
std::vector<int> allowed_cores(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(process, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

/// 0 where the system does not say.
pid_t parent_of(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string key; status >> key; std::getline(status, key))
    if (pid_t parent = 0; key == "PPid:" && status >> parent) return parent;
  return 0;
}

/// Of the nearest ancestor that may use others than this thread: scripts that a launcher starts ranks in are bound with
/// them. Empty: there is none.
std::vector<int> cores_of_launcher() {
  const std::vector<int> own = allowed_cores(0);
  for (pid_t ancestor = getppid(); ancestor > 0; ancestor = parent_of(ancestor)) {
    std::vector<int> cores = allowed_cores(ancestor);
    if (cores != own) return cores;
  }
  return {};
}

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

/// Open MPI's launcher, which tells ranks in their environment what its user has asked for. A mapping asks for cores
/// where it says how many there are for each rank: slot:PE=4.
bool open_mpi_binds_by_default() {
  if (!is_set("OMPI_COMM_WORLD_SIZE") || is_set("OMPI_MCA_hwloc_base_binding_policy")) return false;
  const char* mapping = std::getenv("OMPI_MCA_rmaps_base_mapping_policy");
  const std::string policy = mapping == nullptr ? "" : mapping;
  return policy.find("PE=") == std::string::npos && policy.find("pe=") == std::string::npos;
}

std::vector<int> parse_cores(const std::string& text) {
  std::istringstream stream(text);
  std::vector<int> cores;
  for (int core = 0; stream >> core;) cores.push_back(core);
  return cores;
}

}  // namespace

std::vector<int> cores_of_rank(const std::vector<int>& cores, int local_rank, int ranks_of_host) {
  const auto count = static_cast<int64_t>(cores.size());
  if (count < ranks_of_host) return {cores[static_cast<size_t>(local_rank) % cores.size()]};
  const auto [begin, end] = split_range(count, local_rank, ranks_of_host);
  return {cores.begin() + begin, cores.begin() + end};
}

std::vector<int> choose_cores(const Placing& placing, int local_rank) {
  const auto ranks = static_cast<int>(placing.cores.size());
  const std::vector<int>& own = placing.cores[static_cast<size_t>(local_rank)];
  const std::vector<int>& host = placing.launcher_cores;
  if (placing.bound_by_default && std::includes(host.begin(), host.end(), own.begin(), own.end()))
    return cores_of_rank(host, local_rank, ranks);
  const bool all_alike = std::all_of(placing.cores.begin(), placing.cores.end(),
                                     [&](const std::vector<int>& cores) { return cores == own; });
  if (all_alike && !own.empty()) return cores_of_rank(own, local_rank, ranks);
  return own;
}

void take_cores(comm::Communicator* ranks) {
  if (ranks == nullptr) return;
  const std::vector<comm::Member>& members = ranks->members();
  const comm::Member& own = members[static_cast<size_t>(ranks->rank())];
  const std::vector<std::string> all =
      comm::all_gather(*ranks, fmt::format("{}", fmt::join(allowed_cores(0), " ")), "cores of the ranks");
  Placing placing{.cores = {}, .launcher_cores = cores_of_launcher(), .bound_by_default = open_mpi_binds_by_default()};
  placing.cores.resize(static_cast<size_t>(ranks_of_host(ranks)));
  for (size_t rank = 0; rank < members.size(); ++rank)
    if (members[rank].host_index == own.host_index)
      placing.cores[static_cast<size_t>(members[rank].local_rank)] = parse_cores(all[rank]);
  const std::vector<int> cores = choose_cores(placing, own.local_rank);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (!cores.empty()) sched_setaffinity(0, sizeof set, &set);  // where that is refused, ranks share the cores they have
}

int64_t cores_of_host(const comm::Communicator* ranks) {
  if (ranks == nullptr) return available_cores();
  const std::vector<comm::Member>& members = ranks->members();
  std::set<int> cores;
  for (const comm::Member& member : members)
    if (member.host_index == members[static_cast<size_t>(ranks->rank())].host_index)
      for (const int core : allowed_cores(static_cast<pid_t>(member.process))) cores.insert(core);
  return cores.empty() ? available_cores() : granted_cores(static_cast<int64_t>(cores.size()));
}

int64_t common_threads(comm::Communicator* ranks, int64_t threads) {
  if (ranks == nullptr) return threads;
  double least = static_cast<double>(threads);
  comm::all_reduce_min(*ranks, {&least, 1}, "number of threads");
  return static_cast<int64_t>(least);
}

}  // namespace weft::comm
