#include "weft/launch/rank_room.h"

#include <fmt/format.h>

#include <cstring>

#include "weft/base/error.h"
#include "weft/base/say.h"
#include "weft/launch/ask_hosts.h"
#include "weft/launch/launched_ranks.h"

namespace weft::launch {

void RankRoom::leave_out_unreachable() {
  const std::vector<std::string> reasons = find_unreachable(hosts);
  std::vector<HostSlots> left;
  for (size_t host = 0; host < hosts.size(); ++host) {
    if (reasons[host].empty())
      left.push_back(hosts[host]);
    else
      say(fmt::format("host '{}' cannot be reached and is left out: {}", hosts[host].name, reasons[host]));
  }
  if (left.size() == 1 && hosts.size() > 2)
    say(fmt::format("no host but '{}' can be reached: it may be its own network that is cut", left.front().name));
  hosts = std::move(left);
}

void RankRoom::take_away(const JobEnd& end, const std::vector<HostSlots>& placed) {
  if (hosts.empty()) {
    slots -= end.launcher_killed ? 0 : 1;
    return;
  }
  const size_t before = hosts.size();
  leave_out_unreachable();
  if (end.lost && end.lost->rank >= 0)
    hosts = without_slot(std::move(hosts), host_of_rank(placed, end.lost->rank));
  else if (end.lost && hosts.size() > 1)
    std::erase_if(hosts, [&](const HostSlots& host) { return host.name == end.lost->host; });
  else if (hosts.size() == before && !end.launcher_killed)
    hosts = without_slot(std::move(hosts), hosts.back().name);
  slots = count_slots(hosts);
}

RankRoom find_room(const std::string& hosts, int ranks) {
  RankRoom room{.hosts = hosts.empty() ? hosts_of_slurm_job() : parse_hosts(hosts)};
  if (room.hosts.empty()) {
    room.slots = ranks;
    return room;
  }
  const std::vector<std::string> reasons = find_unreachable(room.hosts);
  for (size_t host = 0; host < reasons.size(); ++host)
    if (!reasons[host].empty())
      fail(ErrorKind::usage,
           "host '{}' cannot be reached: {}; start nothing there, or see that a command can be run "
           "there without a password",
           room.hosts[host].name, reasons[host]);
  // Nobody else has been told how many a host may take than who wants more ranks than there are slots.
  if (count_slots(room.hosts) < ranks) room.hosts = place_ranks(room.hosts, ranks);
  room.slots = count_slots(room.hosts);
  return room;
}

bool lost_a_rank(const JobEnd& end) {
  return end.unstarted.empty() && (end.code == kLostRankExitCode || end.code > 128 || (end.lost && end.code != 0));
}

std::string describe(const JobEnd& end) {
  if (end.launcher_killed) return fmt::format("mpirun was killed by signal {}", end.code - 128);
  if (!end.lost && end.was_deserted)
    return fmt::format("all ranks of this host have ended, and mpirun, which went on, was ended (exit code {})",
                       end.code);
  // While ranks still start, mpirun does not say which one.
  if (!end.lost && end.code > 128)
    return fmt::format("a rank was ended by signal {} ({}) (exit code {})", end.code - 128, strsignal(end.code - 128),
                       end.code);
  if (!end.lost) return fmt::format("a rank was lost (exit code {})", end.code);
  if (end.lost->rank < 0) return fmt::format("host '{}' {}", end.lost->host, end.lost->reason);
  return fmt::format("rank {} on host '{}' {} (exit code {})", end.lost->rank, end.lost->host,
                     end.lost->reason.empty() ? "was lost" : end.lost->reason, end.code);
}

}  // namespace weft::launch
