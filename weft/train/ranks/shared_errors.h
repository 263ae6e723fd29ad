// Shares the errors of gradient compression among ranks. What compression leaves out of the gradients differs from rank
// to rank, but a checkpoint holds one state for all. Before a checkpoint, every rank therefore replaces its error by
// the mean. Only the sum of the errors matters, and that stays the same. A run resumed from the checkpoint, on any
// number of ranks, continues as this one does.
#pragma once

#include <memory>

#include "weft/comm/collectives.h"
#include "weft/device/state.h"

namespace weft::train {

class SharedErrors {
 public:
  /// Null `collectives`: the process is alone, and nothing happens. Keeps references.
  SharedErrors(comm::Collectives* collectives, State& state);
  /// Whether the ranks have such errors.
  bool exist() const { return chunk_ != nullptr; }
  /// Replaces the errors by their mean. All ranks must call it after the same step.
  void average();

 private:
  comm::Collectives* collectives_;
  State& state_;
  comm::CollectiveId id_;
  std::shared_ptr<std::byte> chunk_;
};

}  // namespace weft::train
