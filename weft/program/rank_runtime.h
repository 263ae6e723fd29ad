// By what a process takes part in the collectives of its step: kernels that exchange, memory that the ranks of its host
// share, and what the planner is to know of both. Alone, all of it is as usual.
#pragma once

#include <memory>
#include <string>

#include "weft/comm/collectives.h"
#include "weft/comm/communicator.h"
#include "weft/device/arena.h"
#include "weft/device/device.h"
#include "weft/passes/pipeline.h"
#include "weft/spec/compile_options.h"

namespace weft::program {

/// By what collectives are planned: as the first rank reads it in `file`, which `weft cluster probe` writes; where that
/// is empty, measured now, in some seconds, where there are several hosts, else weft's defaults. The same on all
/// ranks, to the digits that such a file has; Error as read_cluster_file() gives, on all of them alike.
comm::ClusterCosts agreed_costs(comm::Communicator* ranks, const std::string& file);

class RankRuntime {
 public:
  /// Keeps the communicator, null where the process is alone. `threads` of a step. All ranks construct it together,
  /// with the same costs.
  /// `in_tree_order`: see CollectivesOptions.
  RankRuntime(comm::Communicator* ranks, int threads, const comm::ClusterCosts& costs = {}, bool in_tree_order = false);

  /// The table with kernels for the collectives.
  KernelTable kernels(KernelTable table) const;
  /// For steps on that device whose tensors are exchanged. All ranks reserve and allocate as much.
  std::shared_ptr<Arena> make_arena(const Device& device) const;
  /// As the planner sees them: the latency of a small all-reduce, and the rate of a large one.
  passes::Ranks costs() const;

  /// Of a training step of the spec, which the loop finishes before it reads the state.
  CompileOptions training_options(const spec::RunSpec& spec, const Backend& backend,
                                  std::shared_ptr<const CostModel> node_costs) const;

  /// cluster.toml with the costs, by which another start on the same hosts plans the same; empty on one host.
  std::string cluster() const;

  /// Null where the process is alone.
  const std::shared_ptr<comm::Collectives>& collectives() const { return collectives_; }

 private:
  std::shared_ptr<comm::Collectives> collectives_;
  std::string cluster_;
};

}  // namespace weft::program
