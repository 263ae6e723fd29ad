#include "weft/train/ranks/relief.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/comm/patience.h"
#include "weft/data/load/loader.h"
#include "weft/step/grains.h"
#include "weft/train/ranks/assign_grains.h"

namespace weft::train {

namespace {

std::vector<double> medians_of(const std::vector<std::vector<double>>& rounds) {
  std::vector<double> medians;
  for (size_t rank = 0; rank < rounds.front().size(); ++rank) {
    std::vector<double> seconds;
    for (const std::vector<double>& round : rounds) seconds.push_back(round[rank]);
    const auto middle = static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), seconds.begin() + middle, seconds.end());
    medians.push_back(seconds[static_cast<size_t>(middle)]);
  }
  return medians;
}

std::vector<int64_t> shares_at_first(const spec::RunSpec& spec, int ranks, const std::vector<int64_t>& recorded) {
  const int64_t grains = spec.balance.grains;
  if (grains == 0) return {};
  return spec.balance.by_speed ? step::grains_to_begin_with(recorded, grains, ranks)
                               : step::equal_grains(grains, ranks);
}

}  // namespace

std::string describe(const ShareChange& change, const comm::Communicator& ranks) {
  constexpr int kNamed = 6;
  int64_t grains = 0;
  for (const int64_t share : change.after) grains += share;
  std::string text = fmt::format("from step {} on, by their speed,", change.from_step + 1);
  int changed = 0;
  for (size_t rank = 0; rank < change.after.size(); ++rank) {
    if (change.after[rank] == change.before[rank] || ++changed > kNamed) continue;
    const std::string name = comm::name_of_rank(ranks, static_cast<int>(rank));
    text += changed == 1 ? fmt::format(" {} takes {} of {} grains of each batch (before {})", name, change.after[rank],
                                       grains, change.before[rank])
                         : fmt::format(", {} takes {} (before {})", name, change.after[rank], change.before[rank]);
  }
  return changed > kNamed ? text + fmt::format(", and {} others take other shares too", changed - kNamed) : text;
}

bool ShareJudge::judge(std::span<const double> seconds) {
  if (std::any_of(seconds.begin(), seconds.end(), [](double one) { return !(one > 0) || !std::isfinite(one); }))
    return false;
  rounds_.emplace_back(seconds.begin(), seconds.end());
  if (rounds_.size() > kRounds) rounds_.erase(rounds_.begin());
  if (rounds_.size() < kRounds) return false;
  int64_t grains = 0;
  for (const int64_t share : shares_) grains += share;
  std::vector<int64_t> wanted = assign_grains(grains, medians_of(rounds_));
  for (const std::vector<double>& round : rounds_)
    if (largest_time(wanted, round) >= (1 - kGain) * largest_time(shares_, round)) return false;
  shares_ = std::move(wanted);
  rounds_.clear();
  return true;
}

Relief::Relief(const spec::RunSpec& spec, comm::Communicator* ranks, data::Loader& loader,
               const std::vector<int64_t>& recorded)
    : grains_(spec.balance.grains),
      by_speed_(spec.balance.by_speed && ranks != nullptr),
      rank_(comm::rank_of(ranks)),
      loader_(loader),
      shares_(shares_at_first(spec, comm::number_of(ranks), recorded)),
      judge_(shares_) {
  if (!is_on()) return;
  loader_.set_share(first(), own());
  if (!by_speed_) return;
  auto ahead = static_cast<double>(loader_.batches_ahead());
  comm::all_reduce_max(*ranks, {&ahead, 1}, "batches under way");
  ahead_ = static_cast<int64_t>(ahead);
}

int64_t Relief::first() const { return step::first_grain(shares_, rank_); }

bool Relief::begin_step(int64_t step) {
  if (!ordered_ || step < ordered_->from_step) return false;
  shares_ = ordered_->after;
  ordered_.reset();
  judge_.begin_anew();
  return true;
}

std::optional<ShareChange> Relief::judge(int64_t step, std::span<const OwnSeconds> round) {
  if (!by_speed_ || !is_on() || ordered_) return std::nullopt;
  std::vector<double> seconds;
  for (const OwnSeconds& own : round) seconds.push_back(own.step);
  if (!judge_.judge(seconds)) return std::nullopt;
  ordered_ = ShareChange{.from_step = step + ahead_, .before = shares_, .after = judge_.shares()};
  loader_.change_share(step::first_grain(ordered_->after, rank_), ordered_->after[static_cast<size_t>(rank_)], ahead_);
  return ordered_;
}

}  // namespace weft::train
