// What ranks must agree on while they train: when to stop, after which step they exchange more than it does, and where
// a loss that is not finite comes from. The step has it for nothing, as kStop and kOwnLoss (data_parallel.h); of a step
// that has no kStop the ranks exchange it.
#pragma once

#include <functional>
#include <string>

#include "weft/comm/communicator.h"
#include "weft/graph/graph.h"
#include "weft/runtime/executor.h"

namespace weft::train {

class Consensus {
 public:
  /// Keeps a reference to `stop_requested`, which may be empty. Null `ranks`: a process that is alone.
  Consensus(comm::Communicator* ranks, const std::function<bool()>& stop_requested)
      : ranks_(ranks), stop_requested_(stop_requested) {}

  /// From now on the batches run there.
  void bind(Executor& executor, const Graph& graph);
  /// Around each batch of a step. Neither allocates.
  void before_batch(bool wants_exchange);
  void after_batch();
  /// After a step: whether any rank was asked to stop; the same on all of them.
  bool stops();
  /// After stops(): whether the first rank wanted an exchange before a batch of the step.
  bool exchanges() const { return exchanges_; }
  /// After a step whose loss is not finite: " on rank 2 on host 'b'", or " on ranks 1, 2 and 3"; empty where the
  /// process is alone. All ranks call it.
  std::string where_not_finite();

 private:
  bool requested() const { return stop_requested_ && stop_requested_(); }
  double wish(bool wants_exchange) const;
  void take(double wishes);

  comm::Communicator* ranks_;
  const std::function<bool()>& stop_requested_;
  Executor* executor_ = nullptr;
  bool stop_in_step_ = false, has_own_loss_ = false;
  bool wants_exchange_ = false, begins_step_ = true;
  bool stops_ = false;      // some rank was asked, as the step has told
  bool exchanges_ = false;  // the first rank wanted it, as the step has told
  bool is_finite_ = true;   // this rank's own loss, over the batches of the step
};

}  // namespace weft::train
