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
  std::vector<int64_t> divided = {};  // by the number: batches, virtual ranks
  bool as_many_on_each = false;       // host, as virtual ranks want it
};

struct PlacedRanks {
  int count = 0;
  std::vector<HostSlots> hosts = {};  // exactly as many slots; empty: this host
};

/// The most ranks that the run can go on with, up to so many, on the fewest hosts, in order. Without hosts this one
/// takes any number. None where there is no room. One of the hosts `among` has ranks then, where some are named.
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

/// By host, why no program can be started there: what the launcher's agent says (ssh, or what Open MPI was told to take
/// by OMPI_MCA_plm_rsh_agent; srun inside of a Slurm job), or that it did not answer in time; empty where one can.
/// Takes no longer than ten seconds.
std::vector<std::string> find_unreachable(const std::vector<HostSlots>& hosts);

/// The names of hosts on which there is no such file, by its absolute path; the same agent asks them. This host is not
/// asked.
std::vector<std::string> hosts_that_miss(const std::vector<HostSlots>& hosts, const std::filesystem::path& file);

/// What a host holds of a run whose directory lies on its own disk.
struct HeldRun {
  std::string host;
  bool has_answered = false;  // false: nobody knows
  std::string recipe = {};    // its spec.toml; empty: this host has none
  int64_t newest = -1;        // steps of the newest checkpoint, whole or not; -1: none
};

/// By host, in order. `run` is an absolute path.
std::vector<HeldRun> find_run(const std::vector<HostSlots>& hosts, const std::filesystem::path& run);

/// How a run goes on from copies when hosts were lost.
struct CopiesLeft {
  enum class Next {
    go_on,     // from `newest`
    begin,     // hosts that had ranks are left, and none of them had come to write anything
    no_trace,  // no host that had ranks is left: what others hold may be older, or another run
    two_runs,  // hosts that had ranks hold different recipes
  };
  Next next = Next::no_trace;
  std::string recipe = {};                 // the run's spec.toml
  int64_t newest = -1;                     // steps of the newest checkpoint
  std::vector<std::string> holders = {};   // hosts that have it
  std::vector<HostSlots> hosts = {};       // that may take ranks, those with newer checkpoints first
  std::vector<std::string> left_out = {};  // why others may not, a line each
};

/// `hosts` can be reached, `before` had ranks at the last start.
CopiesLeft judge_copies(const std::vector<HostSlots>& hosts, const std::vector<HeldRun>& held,
                        const std::vector<HostSlots>& before);

}  // namespace weft::launch
