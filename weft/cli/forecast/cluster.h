// Measures collectives for `weft cluster bench`; see cluster.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/comm/mpi/session.h"

namespace weft::cli {

struct ClusterBenchOptions {
  comm::CollectiveKind kind = comm::CollectiveKind::all_reduce;
  std::string costs;  // a cluster.toml; empty: what training uses without one
  int64_t largest_bytes = 256 << 20;
  int rounds = 7;
  bool json = false;
};

int cluster_bench(comm::MpiSession& session, const ClusterBenchOptions& options);

}  // namespace weft::cli
