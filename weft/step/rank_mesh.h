// How the ranks of a run are arranged: along the axis data, on which each has a part of every batch, along the axis
// tensor, on which they share the layers, and along the axis pipeline, on which each has some of the layers. Those of
// the latter two read the same batch. Neighbours stand along tensor, then come those along data: in a pipeline ranks
// that have the same layers follow each other.
#pragma once

#include <string>

#include "weft/graph/collective.h"
#include "weft/graph/sharding.h"
#include "weft/spec/run_spec.h"

namespace weft::step {

/// Of so many ranks. Error(usage) where the spec's mesh is not theirs.
Mesh mesh_of(const spec::RunSpec& spec, int ranks);
/// Those that divide each batch. They must be a mesh of the spec.
int data_ranks(const spec::RunSpec& spec, int ranks);
/// Which of them this rank is; ranks that read the same batch are the same one.
int data_rank(const spec::RunSpec& spec, int rank, int ranks);

/// How a user starts more or fewer ranks, for messages.
struct RankStart {
  std::string command = {};  // what mpirun starts, such as "weft bench mlp ..."; empty: `weft launch`, for training
  bool sets_keys = true;     // whether the command takes other values for keys of the recipe

  /// "start 4 ranks (`weft launch -n 4 -- ...`)"
  std::string of(int64_t ranks) const;
};
/// Error(usage) where the spec's mesh is not that of so many ranks.
void require_mesh(const spec::RunSpec& spec, int ranks, const RankStart& start = {});

}  // namespace weft::step
