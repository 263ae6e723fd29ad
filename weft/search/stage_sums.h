// Sums the nodes of a rank's graph up into the costs of its stages.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "weft/passes/ranks/pipeline_stages.h"
#include "weft/search/model_profile.h"

namespace weft::search {

/// The nodes of a rank's graph, by those of the micro-batch that they belong to.
struct OwnedNodes {
  std::vector<int32_t> owner;                // per node: of the micro-batch; kUpdate: of the update
  std::set<std::string> trained;             // weights
  std::map<std::string, double> slot_bytes;  // by weight, of this rank
};
inline constexpr int32_t kUpdate = -1;

/// `cut`, `micro` and `block_of` are of the micro-batch: its stages, its graph, and of which block each node is (-1: of
/// none).
struct StageQuestion {
  const ScaledGraph& graph;
  const OwnedNodes& nodes;
  const step::MicroBatch& micro;
  const passes::StagedGraph& cut;
  const std::vector<int>& block_of;
  int64_t rows = 1;
};
StagedCosts sum_up_stages(const StageQuestion& of, ScaledTimes& times, double file_bytes_per_second);

}  // namespace weft::search
