// What compression has left out of the gradients differs from rank to rank, and a checkpoint holds one state for all:
// before it is written, all ranks go on with the mean of their errors. What matters of them is their sum, which stays
// as it was; and a run that goes on from the checkpoint, on any number of ranks, goes on as this one does.
#pragma once

#include <memory>

#include "weft/comm/collectives.h"
#include "weft/device/state.h"

namespace weft::train {

class SharedErrors {
 public:
  /// Null `collectives`: alone, nothing happens. Keeps references.
  SharedErrors(comm::Collectives* collectives, State& state);
  /// Whether ranks have any.
  bool exist() const { return chunk_ != nullptr; }
  /// All ranks call it after the same step.
  void average();

 private:
  comm::Collectives* collectives_;
  State& state_;
  comm::CollectiveId id_;
  std::shared_ptr<std::byte> chunk_;
};

}  // namespace weft::train
