#include "weft/train/distributed/consensus.h"

#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "weft/comm/exchange.h"
#include "weft/comm/patience.h"
#include "weft/train/data_parallel.h"
#include "weft/train/step.h"

namespace weft::train {

void Consensus::bind(Executor& executor, const Graph& graph) {
  executor_ = &executor;
  stop_in_step_ = ranks_ != nullptr && executor.has_scalar(kStop) && has_output(graph, kStop);
  has_own_loss_ = ranks_ != nullptr && has_output(graph, kOwnLoss);
}

void Consensus::before_batch() {
  if (stop_in_step_) executor_->set_scalar(kStop, requested() ? 1 : 0);
}

void Consensus::after_batch() {
  if (stop_in_step_) stops_ = stops_ || executor_->scalar_output(kStop) > 0;
  if (has_own_loss_) is_finite_ = is_finite_ && std::isfinite(executor_->scalar_output(kOwnLoss));
}

bool Consensus::stops() {
  is_finite_ = true;
  if (ranks_ == nullptr) return requested();
  if (stop_in_step_) return stops_;
  double asked = requested() ? 1 : 0;
  comm::all_reduce_sum(*ranks_, {&asked, 1}, "request to stop");
  return asked > 0;
}

std::string Consensus::where_not_finite() {
  if (ranks_ == nullptr || !has_own_loss_) return "";
  std::vector<double> spoiled(static_cast<size_t>(ranks_->size()));
  spoiled[static_cast<size_t>(ranks_->rank())] = is_finite_ ? 0 : 1;
  comm::all_reduce_sum(*ranks_, spoiled, "losses that are not finite");
  std::vector<int> found;
  for (size_t rank = 0; rank < spoiled.size(); ++rank)
    if (spoiled[rank] > 0) found.push_back(static_cast<int>(rank));
  if (found.empty()) return "";  // each is finite, their sum is not
  if (found.size() == spoiled.size()) return " on all ranks";
  if (found.size() == 1) return " on " + comm::name_of_rank(*ranks_, found.front());
  const int last = found.back();
  found.pop_back();
  return fmt::format(" on ranks {} and {}", fmt::join(found, ", "), last);
}

}  // namespace weft::train
