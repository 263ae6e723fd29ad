#include "weft/launch/start_judge.h"

#include <algorithm>

namespace weft::launch {

std::optional<AbsentRank> StartJudge::judge(const std::vector<JobRank>& ranks) {
  const size_t before = bad_looks_.size();
  for (const JobRank& one : ranks) bad_looks_.try_emplace(one.rank, 0);
  for (auto& [rank, bad] : bad_looks_) {
    const auto found =
        std::find_if(ranks.begin(), ranks.end(), [number = rank](const JobRank& one) { return one.rank == number; });
    bad = found == ranks.end() || found->is_stopped ? bad + 1 : 0;
    if (bad >= patience_.gone)
      return AbsentRank{.rank = rank, .stopped = found == ranks.end() ? -1 : found->process, .looks = bad};
  }
  const bool is_short = !bad_looks_.empty() && static_cast<int>(bad_looks_.size()) < on_host_;
  short_looks_ = is_short && bad_looks_.size() == before ? short_looks_ + 1 : 0;
  if (short_looks_ < patience_.missing) return std::nullopt;
  return AbsentRank{.rank = number_of_missing(), .stopped = -1, .looks = short_looks_};
}

int StartJudge::number_of_missing() const {
  if (on_host_ != in_all_) return -1;
  int rank = 0;
  while (bad_looks_.contains(rank)) ++rank;
  return rank;
}

}  // namespace weft::launch
