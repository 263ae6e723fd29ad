// By what a process takes part in the collectives of its step: kernels that exchange, memory that the ranks of its host
// share, and what the planner is to know of both. Alone, all of it is as usual.
#pragma once

#include <memory>

#include "weft/comm/collectives.h"
#include "weft/comm/communicator.h"
#include "weft/passes/pipeline.h"
#include "weft/runtime/arena.h"
#include "weft/runtime/kernel.h"

namespace weft::train {

class RankRuntime {
 public:
  /// Keeps the communicator, null where the process is alone. `threads` of a step.
  RankRuntime(comm::Communicator* ranks, int threads);

  /// The table with kernels for the collectives.
  KernelTable kernels(KernelTable table) const;
  /// For steps whose tensors are exchanged. All ranks reserve and allocate as much.
  std::shared_ptr<Arena> make_arena() const;
  passes::Ranks costs() const;

  /// Null where the process is alone.
  const std::shared_ptr<comm::Collectives>& collectives() const { return collectives_; }

 private:
  std::shared_ptr<comm::Collectives> collectives_;
};

}  // namespace weft::train
