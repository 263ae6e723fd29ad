// What the library below a communicator can sum by itself, where it can: a candidate beside weft's own algorithms.
#pragma once

#include <span>

#include "weft/comm/communicator.h"

namespace weft::comm {

/// A communicator that is one too offers it, to one user at a time: who takes it must begin all of them in one order.
class NativeAllReduce {
 public:
  virtual ~NativeAllReduce() = default;
  /// Begins to sum the numbers over all ranks, in place; as of a message they must be left alone until the ticket is
  /// done. All ranks begin the same ones in the same order, in which they may hold each other up.
  virtual Ticket all_reduce(std::span<float> values) = 0;
};

/// Null where the communicator has none.
inline NativeAllReduce* find_native_all_reduce(Communicator& communicator) {
  return dynamic_cast<NativeAllReduce*>(&communicator);
}

}  // namespace weft::comm
