// The hosts of a launch: how many ranks each may take, which of them a rank is on, which can be reached.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weft::launch {

struct HostSlots {
  std::string name;
  int slots = 1;  // ranks that it may take
  friend bool operator==(const HostSlots&, const HostSlots&) = default;
};

/// Of "node1:2,node2", as mpirun has it. Error(usage) for anything else.
std::vector<HostSlots> parse_hosts(const std::string& text);
/// Slurm's "2(x3),1": 2, 2, 2, 1. Error(usage) for anything else.
std::vector<int> parse_slurm_counts(const std::string& text);
/// Of the Slurm job that this process runs in, by its environment and scontrol; empty outside of one.
std::vector<HostSlots> hosts_of_slurm_job();

int count_slots(const std::vector<HostSlots>& hosts);
/// The hosts that so many ranks take, in order, with how many each of them has: their slots, and what does not find one
/// evenly beside them.
std::vector<HostSlots> place_ranks(const std::vector<HostSlots>& hosts, int ranks);

/// What a run asks of the number of its ranks, and of their places.
struct RankNeeds {
  std::vector<int64_t> divided = {};  // by the number of ranks that divide the batch: batches, virtual ranks, experts
  bool as_many_on_each = false;       // host, as virtual ranks want it
  int tensor = 1, pipeline = 1;       // ranks of each copy of the model: those that share its layers, or divide them
  int data = 0;                       // ranks that divide the batch, where the run fixes them
};

struct PlacedRanks {
  int count = 0;
  std::vector<HostSlots> hosts = {};  // exactly as many slots; empty: this host
  int tensor = 1, pipeline = 1;       // as needed, or divisors of it where too few ranks are left for one copy
};

/// The most ranks that the run can go on with, up to so many, on the fewest hosts, in order. Without hosts this one
/// takes any number. None where there is no room. One of the hosts `among` has ranks then, where some are named.
/// A copy of the model stays on as many ranks as before, since each has memory for its part, as long as one copy fits.
PlacedRanks usable_ranks(const std::vector<HostSlots>& hosts, int most, const RankNeeds& needs,
                         const std::vector<std::string>& among = {});
/// The name of the host that the rank is on; empty where nobody has placed it.
std::string host_of_rank(const std::vector<HostSlots>& placed, int rank);
/// Whether a rank that was placed so runs on this host, as far as names tell.
bool has_ranks_here(const std::vector<HostSlots>& placed);
/// "node1:2,node2:1"
std::string print_hosts(const std::vector<HostSlots>& hosts);
/// Without one slot of that host.
std::vector<HostSlots> without_slot(std::vector<HostSlots> hosts, const std::string& name);

}  // namespace weft::launch
