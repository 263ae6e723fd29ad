#include "weft/train/ranks/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/comm/patience.h"

namespace weft::train {

namespace {

constexpr double kWorse = 1.5;  // times the factor that was told: that is said too

double median_without(std::span<const OwnSeconds> round, size_t left_out) {
  std::vector<double> seconds;
  for (size_t rank = 0; rank < round.size(); ++rank)
    if (rank != left_out) seconds.push_back(round[rank].step);
  std::sort(seconds.begin(), seconds.end());
  const size_t middle = seconds.size() / 2;
  return seconds.size() % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
}

std::string short_seconds(double seconds) {
  if (seconds >= 0.1) return fmt::format("{:.2f} s", seconds);
  return seconds < 1e-3 ? fmt::format("{:.0f} us", 1e6 * seconds) : fmt::format("{:.1f} ms", 1e3 * seconds);
}

}  // namespace

std::string describe(const RankPace& pace, const comm::Communicator& ranks, bool of_equal_shares) {
  const std::string name = comm::name_of_rank(ranks, pace.rank);
  const std::string times = fmt::format("({}, {})", short_seconds(pace.own.step), short_seconds(pace.others_step));
  if (!pace.is_slow) return fmt::format("{} is as fast as the others again {}", name, times);
  const char* const per = of_equal_shares ? "for an equal share" : "per step";
  const bool by_input = pace.own.input_wait > (pace.own.step - pace.others_step) / 2;
  return fmt::format("{} takes {:.1f} times as long {} as the others {}{}; {}", name, pace.factor(), per, times,
                     of_equal_shares ? "" : ", which wait for it",
                     by_input
                         ? fmt::format("{} of that it waits for its batches: see its disk, or what else reads there",
                                       short_seconds(pace.own.input_wait))
                         : "see what else runs there, and whether its cores are slower or too hot");
}

std::vector<RankPace> SlowRanks::judge(std::span<const OwnSeconds> round) {
  std::vector<RankPace> news;
  if (round.size() < 2) return news;  // nobody to compare with
  for (size_t rank = 0; rank < standings_.size(); ++rank) {
    const RankPace now{.rank = static_cast<int>(rank),
                       .is_slow = true,
                       .own = round[rank],
                       .others_step = median_without(round, rank)};
    if (const std::optional<RankPace> changed = judge(standings_[rank], now)) news.push_back(*changed);
  }
  return news;
}

std::optional<RankPace> SlowRanks::judge(Standing& standing, const RankPace& now) const {
  const bool matters = now.own.step - now.others_step > kLeastShare * now.own.whole;
  const bool was_slow = standing.told_factor > 0;
  const auto count = [](int& rounds, bool is_so) { rounds = is_so ? rounds + 1 : 0; };
  count(standing.slow_rounds, matters && now.own.step > kSlow * now.others_step);
  count(standing.fast_rounds, !matters || now.own.step < kRecovered * now.others_step);
  count(standing.worse_rounds, was_slow && now.own.step > kWorse * standing.told_factor * now.others_step);
  if (was_slow && standing.fast_rounds >= kRounds) {
    standing = {};
    RankPace recovered = now;
    recovered.is_slow = false;
    return recovered;
  }
  if ((was_slow || standing.slow_rounds < kRounds) && standing.worse_rounds < kRounds) return std::nullopt;
  standing.told_factor = now.factor();
  standing.worse_rounds = 0;
  return now;
}

}  // namespace weft::train
