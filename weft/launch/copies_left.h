// Where the run directory lies on disks of the hosts' own: what the hosts that are left hold, and how the run goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/launch/launch_hosts.h"

namespace weft::launch {

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
