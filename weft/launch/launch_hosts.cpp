#include "weft/launch/launch_hosts.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/parse_number.h"
#include "weft/launch/ask_hosts.h"
#include "weft/launch/child_process.h"
#include "weft/launch/slurm_environment.h"
#include "weft/launch/text_parts.h"

namespace weft::launch {

namespace {

/// From 1 on; 0 for anything else.
int parse_count(std::string_view text) { return std::max(0, parse_number<int>(text).value_or(0)); }

/// True where none is named.
bool has_one_of(const std::vector<HostSlots>& placed, const std::vector<std::string>& among) {
  return among.empty() || std::any_of(placed.begin(), placed.end(), [&](const HostSlots& host) {
           return std::count(among.begin(), among.end(), host.name) > 0;
         });
}

/// The first hosts that can take their share where as few as possible share the ranks alike; none where none can.
std::vector<HostSlots> place_evenly(const std::vector<HostSlots>& hosts, int ranks,
                                    const std::vector<std::string>& among) {
  for (int sharing = 1; sharing <= static_cast<int>(hosts.size()); ++sharing) {
    if (ranks % sharing != 0) continue;
    const int each = ranks / sharing;
    std::vector<HostSlots> placed;
    for (const HostSlots& host : hosts)
      if (host.slots >= each && static_cast<int>(placed.size()) < sharing) placed.push_back({host.name, each});
    // One that is wanted takes the place of the last one that is not.
    if (!has_one_of(placed, among))
      for (const HostSlots& host : hosts)
        if (host.slots >= each && !placed.empty() && std::count(among.begin(), among.end(), host.name) > 0) {
          placed.back() = {host.name, each};
          break;
        }
    if (static_cast<int>(placed.size()) == sharing && has_one_of(placed, among)) return placed;
  }
  return {};
}

/// Ranks that have one copy of the model.
struct CopyRanks {
  int tensor = 1, pipeline = 1;
  int count() const { return tensor * pipeline; }
};

/// As the run has them, then those of fewer ranks, the largest first, since they leave each rank the least memory to
/// find. What divides evenly among some ranks does so among a divisor of their number.
std::vector<CopyRanks> copies_of(const RankNeeds& needs) {
  std::vector<CopyRanks> copies;
  for (int tensor = needs.tensor; tensor > 0; --tensor)
    for (int pipeline = needs.pipeline; pipeline > 0; --pipeline)
      if (needs.tensor % tensor == 0 && needs.pipeline % pipeline == 0) copies.push_back({tensor, pipeline});
  std::stable_sort(copies.begin(), copies.end(),
                   [](const CopyRanks& a, const CopyRanks& b) { return a.count() > b.count(); });
  return copies;
}

}  // namespace

std::vector<HostSlots> parse_hosts(const std::string& text) {
  std::vector<HostSlots> hosts;
  for (const std::string& part : split(text, ',')) {
    const size_t colon = part.rfind(':');
    HostSlots host{.name = part.substr(0, colon)};
    if (colon != std::string::npos) host.slots = parse_count(std::string_view(part).substr(colon + 1));
    if (host.name.empty() || host.slots == 0 || host.name.find_first_of(" \t\"'") != std::string::npos)
      fail(ErrorKind::usage, "--hosts '{}': '{}' is no host with a number of ranks; write node1:2,node2:2", text, part);
    const auto known =
        std::find_if(hosts.begin(), hosts.end(), [&](const HostSlots& earlier) { return earlier.name == host.name; });
    if (known == hosts.end())
      hosts.push_back(host);
    else
      known->slots += host.slots;
  }
  return hosts;
}

std::vector<int> parse_slurm_counts(const std::string& text) {
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const size_t open = part.find("(x");
    const int count = parse_count(std::string_view(part).substr(0, open));
    const int times = open == std::string::npos ? 1
                      : part.ends_with(')')
                          ? parse_count(std::string_view(part).substr(open + 2, part.size() - open - 3))
                          : 0;
    if (count == 0 || times == 0)
      fail(ErrorKind::usage, "SLURM_TASKS_PER_NODE is '{}': '{}' is no number; name the hosts with --hosts", text,
           part);
    counts.insert(counts.end(), static_cast<size_t>(times), count);
  }
  return counts;
}

std::vector<HostSlots> hosts_of_slurm_job() {
  if (!is_in_slurm_job()) return {};
  ChildProcess expand({"scontrol", "show", "hostnames", value_of_variable("SLURM_JOB_NODELIST")},
                      ChildProcess::Output::kept);
  const std::string names = expand.wait(kAnswerTime);
  if (!expand.has_ended() || expand.exit_code() != 0)
    fail(ErrorKind::io, "`scontrol show hostnames` does not tell the nodes of this job: {}; name them with --hosts",
         expand.has_ended() ? last_line(names) : "it gave no answer");
  std::vector<HostSlots> hosts;
  for (const std::string& name : split(names, '\n')) hosts.push_back({.name = name});
  const std::string tasks = value_of_variable("SLURM_TASKS_PER_NODE");
  if (tasks.empty()) return hosts;
  const std::vector<int> counts = parse_slurm_counts(tasks);
  for (size_t host = 0; host < std::min(hosts.size(), counts.size()); ++host) hosts[host].slots = counts[host];
  return hosts;
}

int count_slots(const std::vector<HostSlots>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int count, const HostSlots& host) { return count + host.slots; });
}

std::vector<HostSlots> place_ranks(const std::vector<HostSlots>& hosts, int ranks) {
  std::vector<HostSlots> placed = hosts;
  int left = ranks;
  for (HostSlots& host : placed) {
    host.slots = std::min(host.slots, left);
    left -= host.slots;
  }
  for (size_t host = 0; left > 0 && !placed.empty(); host = (host + 1) % placed.size(), --left) ++placed[host].slots;
  std::erase_if(placed, [](const HostSlots& host) { return host.slots == 0; });
  return placed;
}

PlacedRanks usable_ranks(const std::vector<HostSlots>& hosts, int most, const RankNeeds& needs,
                         const std::vector<std::string>& among) {
  const auto divides_all = [&](int number) {
    return std::all_of(needs.divided.begin(), needs.divided.end(),
                       [&](int64_t divided) { return divided % number == 0; });
  };
  const int room = hosts.empty() ? most : std::min(most, count_slots(hosts));
  for (const CopyRanks& copy : copies_of(needs))
    for (int data = room / copy.count(); data > 0; --data) {
      if (!divides_all(data)) continue;
      PlacedRanks placed{.count = data * copy.count(), .tensor = copy.tensor, .pipeline = copy.pipeline};
      if (hosts.empty()) return placed;
      placed.hosts =
          needs.as_many_on_each ? place_evenly(hosts, placed.count, among) : place_ranks(hosts, placed.count);
      if (!placed.hosts.empty() && has_one_of(placed.hosts, among)) return placed;
    }
  return {};
}

std::string host_of_rank(const std::vector<HostSlots>& placed, int rank) {
  for (const HostSlots& host : placed) {
    if (rank < host.slots) return host.name;
    rank -= host.slots;
  }
  return "";
}

bool has_ranks_here(const std::vector<HostSlots>& placed) {
  return placed.empty() ||
         std::any_of(placed.begin(), placed.end(), [](const HostSlots& host) { return is_this_host(host.name); });
}

std::string print_hosts(const std::vector<HostSlots>& hosts) {
  std::string text;
  for (const HostSlots& host : hosts) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host.name, host.slots);
  return text;
}

std::vector<HostSlots> without_slot(std::vector<HostSlots> hosts, const std::string& name) {
  for (HostSlots& host : hosts)
    if (host.name == name) --host.slots;
  std::erase_if(hosts, [](const HostSlots& host) { return host.slots == 0; });
  return hosts;
}

}  // namespace weft::launch
