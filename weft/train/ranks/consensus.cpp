#include "weft/train/ranks/consensus.h"

#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "weft/comm/exchange.h"
#include "weft/comm/patience.h"
#include "weft/step/data_parallel.h"
#include "weft/step/step.h"

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
  stops_in_ = own_loss_in_ = own_gradient_in_ = nullptr;
  if (ranks_ == nullptr) return;
  for (const Part& part : {batch, update})
    if (part.executor != nullptr && part.executor->has_scalar(step::kStop) &&
        step::has_output(*part.graph, step::kStop))
      stops_in_ = part.executor;
  if (step::has_output(*batch.graph, step::kOwnLoss)) own_loss_in_ = batch.executor;
  if (step::has_output(*batch.graph, step::kOwnGradient)) own_gradient_in_ = batch.executor;
}

void Consensus::before_run(const Executor& executor, bool wants_exchange) {
  if (begins_step_) exchanges_ = false;
  begins_step_ = false;
  wants_exchange_ = wants_exchange;
  if (&executor == stops_in_) stops_in_->set_scalar(step::kStop, wish(wants_exchange));
}

void Consensus::after_run(const Executor& executor, bool completes) {
  if (&executor == stops_in_ && completes) take(static_cast<double>(executor.scalar_output(step::kStop)));
  const auto is_finite = [&](const char* output) { return std::isfinite(executor.scalar_output(output)); };
  if (&executor == own_loss_in_) own_.loss = own_.loss && is_finite(step::kOwnLoss);
  if (&executor == own_gradient_in_) own_.gradient = own_.gradient && is_finite(step::kOwnGradient);
}

bool Consensus::stops() {
  own_before_ = std::exchange(own_, {});
  begins_step_ = true;
  if (ranks_ == nullptr) return requested();
  if (stops_in_ != nullptr) return stops_;
  double wishes = wish(wants_exchange_);
  comm::all_reduce_sum(*ranks_, {&wishes, 1}, "request to stop");
  take(wishes);
  return stops_;
}

std::vector<int> Consensus::ranks_where(bool is_so, const char* what) const {
  std::vector<double> all(static_cast<size_t>(ranks_->size()));
  all[static_cast<size_t>(ranks_->rank())] = is_so ? 1 : 0;
  comm::all_reduce_sum(*ranks_, all, what);
  std::vector<int> found;
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] > 0) found.push_back(static_cast<int>(rank));
  return found;
}

std::string Consensus::names_of(const std::vector<int>& found) const {
  if (found.empty()) return "";  // each is finite, their sum is not
  if (found.size() == static_cast<size_t>(ranks_->size())) return " on all ranks";
  if (found.size() == 1) return " on " + comm::name_of_rank(*ranks_, found.front());
  return fmt::format(" on ranks {} and {}", fmt::join(found.begin(), found.end() - 1, ", "), found.back());
}

std::string Consensus::where_not_finite() const {
  if (ranks_ == nullptr || own_loss_in_ == nullptr) return "";
  const std::vector<int> losses = ranks_where(!own_.loss, "losses that are not finite");
  const std::vector<int> before = ranks_where(!own_before_.gradient, "gradients that are not finite");
  const bool all = losses.size() == static_cast<size_t>(ranks_->size());
  if (!all || before.empty() || before.size() == losses.size()) return names_of(losses);
  return fmt::format("{}, after a gradient that was not finite{},", names_of(losses), names_of(before));
}

std::string Consensus::where_gradient_not_finite() const {
  if (ranks_ == nullptr || own_gradient_in_ == nullptr) return "";
  return names_of(ranks_where(!own_.gradient, "gradients that are not finite"));
}

std::string Consensus::where_last_gradient_not_finite() const {
  if (ranks_ == nullptr || own_gradient_in_ == nullptr) return "";
  return names_of(ranks_where(!own_before_.gradient, "gradients that are not finite"));
}

}  // namespace weft::train
