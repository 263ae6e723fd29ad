// How the ranks of a run are arranged: along the axis data, on which each has a part of every batch, along the axis
// tensor, on which they share the layers, and along the axis pipeline, on which each has some of the layers. Those of
// the latter two read the same batch. Neighbours stand along tensor, then come those along data: in a pipeline ranks
// that have the same layers follow each other.
#pragma once

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
/// Error(usage) where the spec's mesh is not that of so many ranks.
void require_mesh(const spec::RunSpec& spec, int ranks);

}  // namespace weft::step
