// What a process needs for the collectives of its step: kernels that exchange, memory shared by the ranks of its
// host, and their costs for the planner. A process that is alone needs none of it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/comm/collective_planner.h"
#include "weft/comm/collectives.h"
#include "weft/comm/communicator.h"
#include "weft/comm/group.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/device/arena.h"
#include "weft/device/device.h"
#include "weft/graph/collective.h"
#include "weft/graph/sharding.h"
#include "weft/passes/pipeline.h"
#include "weft/runtime/collective_kernels.h"
#include "weft/spec/compile_options.h"

namespace weft::program {

/// The costs by which collectives are planned, the same on all ranks. The first rank reads them from `file`, which
/// `weft cluster probe` writes. Where `file` is empty they are measured now, in some seconds, if there are several
/// hosts, else they are weft's defaults. They are rounded to the digits of such a file. Errors of read_cluster_file()
/// reach all ranks.
comm::ClusterCosts agreed_costs(comm::Communicator* ranks, const std::string& file);

/// Of described ranks that share a host's memory. `bytes_per_second`: of one rank's operands of an all-reduce.
passes::Ranks ranks_in_memory(int count, double bytes_per_second = comm::ClusterCosts{}.shared_bytes_per_second);

class RankRuntime {
 public:
  /// Keeps the communicator, null where the process is alone. `threads`: those of a step. All ranks construct it
  /// together, with the same costs. `in_tree_order`: see CollectivesOptions.
  /// `mesh`: how they stand (step/rank_mesh.h); without axes all divide the batch.
  RankRuntime(comm::Communicator* ranks, int threads, const comm::ClusterCosts& costs = {}, bool in_tree_order = false,
              const Mesh& mesh = Mesh({}));

  /// Of a rank of those that are not here, to plan its step: nothing can be exchanged. `described`: of those that
  /// divide the batch; `mesh`: how all of them stand; `rank`: which of all it is.
  explicit RankRuntime(const passes::Ranks& described, const Mesh& mesh = Mesh({}), int rank = 0)
      : tensor_ranks_(static_cast<int>(mesh.size_of(kTensorAxis))), described_(described), described_rank_(rank) {}

  /// Of described ranks: on which hosts they stand, and what exchanges between these cost.
  void describe_hosts(const Mesh& mesh, int ranks_per_host, const comm::ClusterCosts& costs);

  /// The table with kernels for the collectives.
  KernelTable kernels(KernelTable table) const;
  /// An arena for steps on this device whose tensors are exchanged. Ranks that reduce together must reserve and
  /// allocate the same size.
  std::shared_ptr<Arena> make_arena(const Device& device) const;
  /// The costs for the planner: latency of a small all-reduce, and rate of a large one.
  passes::Ranks costs() const;

  /// Options for a training step of the spec; the loop must finish the step before it reads the state.
  CompileOptions training_options(const spec::RunSpec& spec, const Backend& backend,
                                  std::shared_ptr<const CostModel> node_costs) const;

  /// Of memory that the collectives of these graphs take on this rank for messages between hosts. Exchanges nothing.
  int64_t message_buffer_bytes(const std::vector<const Graph*>& graphs) const;

  /// The text of cluster.toml with the costs, by which a restart on the same hosts plans the same; empty on one host.
  std::string cluster() const;

  /// Of the ranks that divide the batch, in a pipeline those that have the same stages. Null where one alone has all of
  /// it.
  const std::shared_ptr<comm::Collectives>& collectives() const { return collectives_; }
  /// Of those along each axis that has several, but for a pipeline.
  const CollectivesByAxis& axes() const { return axes_; }
  int tensor_ranks() const { return tensor_ranks_; }
  /// Of all ranks of a pipeline, for messages; null without one.
  const std::shared_ptr<comm::Collectives>& messages() const { return messages_; }
  /// Of every axis, and for messages: all that exchanges during a step.
  std::vector<comm::Collectives*> all_collectives() const;
  /// Ranks whose steps exchange in shared memory: their arenas have one size. Null where this one has no such others.
  comm::Communicator* alike_ranks() const { return alike_ranks_; }
  /// Bytes that the rank with the least has for itself, by its host's free memory and the ranks there.
  int64_t least_memory() const { return least_memory_; }
  /// Of all ranks.
  int rank() const { return described_ ? described_rank_ : comm::rank_of(ranks_); }

 private:
  comm::Communicator* ranks_ = nullptr;
  std::vector<std::shared_ptr<comm::Group>> groups_;  // before what uses them
  comm::Communicator* alike_ranks_ = nullptr;
  std::shared_ptr<comm::Collectives> collectives_, messages_;
  CollectivesByAxis axes_;
  int tensor_ranks_ = 1;
  int64_t least_memory_ = INT64_MAX;
  std::string cluster_;
  std::optional<passes::Ranks> described_ = {};
  int described_rank_ = 0;
  std::map<std::string, comm::CollectivePlanner> described_hosts_ = {};  // by axis
};

}  // namespace weft::program
