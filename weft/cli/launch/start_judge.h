// Who keeps the others from starting: from looks at the ranks of a host, one after the other.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/cli/launch/job_ranks.h"

namespace weft::cli {

struct AbsentRank {
  int rank = -1;       // -1: one of those that have ended before anybody looked
  pid_t stopped = -1;  // its process; -1: it has ended
  friend bool operator==(const AbsentRank&, const AbsentRank&) = default;
};

/// Blames nobody for being slow: only who is stopped, or has ended, at so many looks in a row.
class StartJudge {
 public:
  /// `on_host` ranks are to come to this host, of `in_all`; 0: not known.
  StartJudge(int on_host, int in_all, int looks) : on_host_(on_host), in_all_(in_all), looks_(looks) {}

  std::optional<AbsentRank> judge(const std::vector<JobRank>& ranks);

 private:
  int number_of_missing() const;

  const int on_host_, in_all_, looks_;
  std::map<int, int> bad_looks_;  // in a row, by rank: of all that were seen
  int short_looks_ = 0;           // in a row, that nobody new came, though some are missing
};

}  // namespace weft::cli
