// What ranks must agree on while they train: when to stop, after which step they exchange more than it does, and where
// a loss that is not finite comes from. The step has it for nothing, as kStop, kOwnLoss and kOwnGradient
// (data_parallel.h); of a step that has no kStop the ranks exchange it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/graph/graph.h"
#include "weft/runtime/executor.h"

namespace weft::train {

class Consensus {
 public:
  /// Keeps a reference to `stop_requested`, which may be empty. Null `ranks`: a process that is alone.
  Consensus(comm::Communicator* ranks, const std::function<bool()>& stop_requested)
      : ranks_(ranks), stop_requested_(stop_requested) {}

  struct Part {
    Executor* executor = nullptr;
    const Graph* graph = nullptr;
  };
  /// From now on batches run in the first; the update, where it is a graph of its own, in the other.
  void bind(const Part& batch, const Part& update);
  /// Around each run of either. Neither allocates.
  void before_run(const Executor& executor, bool wants_exchange);
  void after_run(const Executor& executor);
  /// After a step: whether any rank was asked to stop; the same on all of them.
  bool stops();
  /// After stops(): whether the first rank wanted an exchange before a run of the step.
  bool exchanges() const { return exchanges_; }
  /// Of ranks that train apart, after a round of steps: its losses are forgotten.
  void begin_anew() { own_ = {}; }
  /// After a step whose loss is not finite: " on rank 2 on host 'b'", or " on ranks 1, 2 and 3"; where it is on all of
  /// them, with those whose gradients had spoiled the weights in the step before. Empty where the process is alone. All
  /// ranks call it.
  std::string where_not_finite() const;
  /// After a step whose gradients are not finite: the ranks that those come from, as above.
  std::string where_gradient_not_finite() const;
  /// The same after stops().
  std::string where_last_gradient_not_finite() const;

 private:
  bool requested() const { return stop_requested_ && stop_requested_(); }
  double wish(bool wants_exchange) const;
  void take(double wishes);
  std::vector<int> ranks_where(bool is_so, const char* what) const;
  std::string names_of(const std::vector<int>& found) const;

  comm::Communicator* ranks_;
  const std::function<bool()>& stop_requested_;
  Executor *stops_in_ = nullptr, *own_loss_in_ = nullptr, *own_gradient_in_ = nullptr;  // null: it is in no graph
  bool wants_exchange_ = false, begins_step_ = true;
  bool stops_ = false;      // some rank was asked, as the step has told
  bool exchanges_ = false;  // the first rank wanted it, as the step has told
  struct Finite {
    bool loss = true, gradient = true;
  };
  Finite own_, own_before_;  // of this rank, over the runs of the step, and of the step before
};

}  // namespace weft::train
