// What ranks must agree on during training: when to stop, after which step to exchange more than the step does, and
// which ranks a loss that is not finite comes from. A data-parallel step exchanges this at no extra cost, as kStop,
// kOwnLoss and kOwnGradient (data_parallel.h). Where a step has no kStop, the ranks exchange it separately.
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
  /// Keeps a reference to `stop_requested`, which may be empty. Null `ranks`: the process is alone.
  Consensus(comm::Communicator* ranks, const std::function<bool()>& stop_requested)
      : ranks_(ranks), stop_requested_(stop_requested) {}

  struct Part {
    Executor* executor = nullptr;
    const Graph* graph = nullptr;
  };
  /// From now on batches run in `batch`. Where the update is a graph of its own, it runs in `update`.
  void bind(const Part& batch, const Part& update);
  /// Call these before and after each run of either part. Neither allocates. `completes`: the run is of the last piece
  /// of a batch on this rank, after which alone ranks with different numbers of pieces exchange anything.
  void before_run(const Executor& executor, bool wants_exchange);
  void after_run(const Executor& executor, bool completes = true);
  /// Call after a step: whether any rank was asked to stop. All ranks return the same.
  bool stops();
  /// Call after stops(): whether the first rank asked for an exchange before a run of the step.
  bool exchanges() const { return exchanges_; }
  /// For ranks that train apart: call after a round of steps. Forgets the losses of the round.
  void begin_anew() { own_ = {}; }
  /// Call after a step whose loss is not finite; all ranks must call it. Returns " on rank 2 on host 'b'" or " on ranks
  /// 1, 2 and 3". Where the loss is not finite on all ranks, also names those whose gradients spoiled the weights in
  /// the step before, if some ranks had such gradients and some had not. Empty where the process is alone.
  std::string where_not_finite() const;
  /// Call after a step whose gradients are not finite: names the ranks that they come from, as above.
  std::string where_gradient_not_finite() const;
  /// The same, but called after stops().
  std::string where_last_gradient_not_finite() const;

 private:
  bool requested() const { return stop_requested_ && stop_requested_(); }
  double wish(bool wants_exchange) const;
  void take(double wishes);
  std::vector<int> ranks_where(bool is_so, const char* what) const;
  std::string names_of(const std::vector<int>& found) const;

  comm::Communicator* ranks_;
  const std::function<bool()>& stop_requested_;
  Executor *stops_in_ = nullptr, *own_loss_in_ = nullptr, *own_gradient_in_ = nullptr;  // null: no graph has it
  bool wants_exchange_ = false, begins_step_ = true;
  bool stops_ = false;      // some rank was asked to stop, as the step reported
  bool exchanges_ = false;  // the first rank wanted an exchange, as the step reported
  struct Finite {
    bool loss = true, gradient = true;
  };
  Finite own_, own_before_;  // of this rank: over the runs of this step, and of the step before
};

}  // namespace weft::train
