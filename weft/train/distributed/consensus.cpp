#include "weft/train/distributed/consensus.h"

#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "weft/comm/exchange.h"
#include "weft/comm/patience.h"
#include "weft/train/data_parallel.h"
#include "weft/train/step.h"

namespace weft::train {

namespace {

// Of the first rank alone, so that a sum tells it from requests to stop, each of which is 1, in any format.
constexpr double kExchange = 0.125;

}  // namespace

double Consensus::wish(bool wants_exchange) const {
  if (requested()) return 1;
  return wants_exchange && ranks_->rank() == 0 ? kExchange : 0;
}

void Consensus::take(double wishes) {
  stops_ = stops_ || wishes > 0.5;
  exchanges_ = exchanges_ || (wishes > 0 && wishes < 0.5);
}

void Consensus::bind(Executor& executor, const Graph& graph) {
  executor_ = &executor;
  stop_in_step_ = ranks_ != nullptr && executor.has_scalar(kStop) && has_output(graph, kStop);
  has_own_loss_ = ranks_ != nullptr && has_output(graph, kOwnLoss);
}

void Consensus::before_batch(bool wants_exchange) {
  if (begins_step_) exchanges_ = false;
  begins_step_ = false;
  wants_exchange_ = wants_exchange;
  if (stop_in_step_) executor_->set_scalar(kStop, wish(wants_exchange));
}

void Consensus::after_batch() {
  if (stop_in_step_) take(static_cast<double>(executor_->scalar_output(kStop)));
  if (has_own_loss_) is_finite_ = is_finite_ && std::isfinite(executor_->scalar_output(kOwnLoss));
}

bool Consensus::stops() {
  is_finite_ = begins_step_ = true;
  if (ranks_ == nullptr) return requested();
  if (stop_in_step_) return stops_;
  double wishes = wish(wants_exchange_);
  comm::all_reduce_sum(*ranks_, {&wishes, 1}, "request to stop");
  take(wishes);
  return stops_;
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
