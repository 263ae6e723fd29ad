// Checkpoints of ranks that share states: each writes its part, all at once, into the directory that its host keeps,
// which becomes whole when all have. Where several hosts keep one, each gets the parts of the others.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "weft/comm/communicator.h"
#include "weft/device/state.h"
#include "weft/run/checkpoint/manifest.h"
#include "weft/run/checkpoint/store.h"

namespace weft::run {

/// All ranks, in that mesh, call it; of several with the same part the first writes it. `store` and `manifest` are
/// those of the ranks that keep the run directory, the first one among them; `store` is null elsewhere. SharedError as
/// CheckpointStore::write() gives it on any rank, or where a rank does not see the directory; the older checkpoints
/// then stay as they are.
void write_in_parts(comm::Communicator& ranks, CheckpointStore* store, const State& state, Manifest manifest,
                    const step::Shardings& shardings, const Mesh& mesh);

}  // namespace weft::run
