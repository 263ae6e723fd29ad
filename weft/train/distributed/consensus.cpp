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

void Consensus::bind(const Part& batch, const Part& update) {
  stops_in_ = own_loss_in_ = nullptr;
  if (ranks_ == nullptr) return;
  for (const Part& part : {batch, update})
    if (part.executor != nullptr && part.executor->has_scalar(kStop) && has_output(*part.graph, kStop))
      stops_in_ = part.executor;
  if (has_output(*batch.graph, kOwnLoss)) own_loss_in_ = batch.executor;
}

void Consensus::before_run(const Executor& executor, bool wants_exchange) {
  if (begins_step_) exchanges_ = false;
  begins_step_ = false;
  wants_exchange_ = wants_exchange;
  if (&executor == stops_in_) stops_in_->set_scalar(kStop, wish(wants_exchange));
}

void Consensus::after_run(const Executor& executor) {
  if (&executor == stops_in_) take(static_cast<double>(executor.scalar_output(kStop)));
  if (&executor == own_loss_in_) is_finite_ = is_finite_ && std::isfinite(executor.scalar_output(kOwnLoss));
}

bool Consensus::stops() {
  is_finite_ = begins_step_ = true;
  if (ranks_ == nullptr) return requested();
  if (stops_in_ != nullptr) return stops_;
  double wishes = wish(wants_exchange_);
  comm::all_reduce_sum(*ranks_, {&wishes, 1}, "request to stop");
  take(wishes);
  return stops_;
}

std::string Consensus::where_not_finite() {
  if (ranks_ == nullptr || own_loss_in_ == nullptr) return "";
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
