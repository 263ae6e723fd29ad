// What a process needs for the collectives of its step: kernels that exchange, memory shared by the ranks of its
// host, and their costs for the planner. A process that is alone needs none of it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "weft/comm/collectives.h"
#include "weft/comm/communicator.h"
#include "weft/device/arena.h"
#include "weft/device/device.h"
#include "weft/passes/pipeline.h"
#include "weft/spec/compile_options.h"

namespace weft::program {

/// The costs by which collectives are planned, the same on all ranks. The first rank reads them from `file`, which
/// `weft cluster probe` writes. Where `file` is empty they are measured now, in some seconds, if there are several
/// hosts, else they are weft's defaults. They are rounded to the digits of such a file. Errors of read_cluster_file()
/// reach all ranks.
comm::ClusterCosts agreed_costs(comm::Communicator* ranks, const std::string& file);

class RankRuntime {
 public:
  /// Keeps the communicator, null where the process is alone. `threads`: those of a step. All ranks construct it
  /// together, with the same costs. `in_tree_order`: see CollectivesOptions.
  RankRuntime(comm::Communicator* ranks, int threads, const comm::ClusterCosts& costs = {}, bool in_tree_order = false);

  /// Of ranks that are not here, to plan their steps: nothing can be exchanged.
  explicit RankRuntime(const passes::Ranks& described) : described_(described) {}

  /// The table with kernels for the collectives.
  KernelTable kernels(KernelTable table) const;
  /// An arena for steps on this device whose tensors are exchanged. All ranks must reserve and allocate the same size.
  std::shared_ptr<Arena> make_arena(const Device& device) const;
  /// The costs for the planner: latency of a small all-reduce, and rate of a large one.
  passes::Ranks costs() const;

  /// Options for a training step of the spec; the loop must finish the step before it reads the state.
  CompileOptions training_options(const spec::RunSpec& spec, const Backend& backend,
                                  std::shared_ptr<const CostModel> node_costs) const;

  /// The text of cluster.toml with the costs, by which a restart on the same hosts plans the same; empty on one host.
  std::string cluster() const;

  /// Null where the process is alone.
  const std::shared_ptr<comm::Collectives>& collectives() const { return collectives_; }

 private:
  std::shared_ptr<comm::Collectives> collectives_;
  std::string cluster_;
  std::optional<passes::Ranks> described_ = {};
};

}  // namespace weft::program
