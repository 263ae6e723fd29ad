// Commands on the hosts of a launch, by ssh or what else the launcher starts ranks with.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/launch/launch_hosts.h"

namespace weft::launch {

/// How long a host, or Slurm, may take to answer.
inline constexpr std::chrono::seconds kAnswerTime{10};

/// As far as names tell.
bool is_this_host(const std::string& name);

struct Answer {
  std::string failure = {};  // why the command did not end with 0; empty where it did, and for this host
  std::string said = {};     // what it printed
};

/// By host, within that time. This host is not asked.
std::vector<Answer> answers_of(const std::vector<HostSlots>& hosts, const std::vector<std::string>& command);

/// By host, why no program can be started there: what the launcher's agent says (ssh, or what Open MPI was told to take
/// by OMPI_MCA_plm_rsh_agent; srun inside of a Slurm job), or that it did not answer in time; empty where one can.
/// Takes no longer than ten seconds.
std::vector<std::string> find_unreachable(const std::vector<HostSlots>& hosts);

/// The names of hosts on which there is no such file, by its absolute path; the same agent asks them. This host is not
/// asked.
std::vector<std::string> hosts_that_miss(const std::vector<HostSlots>& hosts, const std::filesystem::path& file);

}  // namespace weft::launch
