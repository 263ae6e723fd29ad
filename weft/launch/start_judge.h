// Who keeps the others from starting: from looks at the ranks of a host, one after the other.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/launch/job_ranks.h"

namespace weft::launch {

struct AbsentRank {
  int rank = -1;       // -1: one of those that have ended before anybody looked
  pid_t stopped = -1;  // its process; -1: it has ended
  int looks = 0;       // in a row, that have found it so
  friend bool operator==(const AbsentRank&, const AbsentRank&) = default;
};

/// Looks in a row, until somebody is blamed.
struct StartPatience {
  int gone = 0;     // one that had come is stopped, or has ended
  int missing = 0;  // nobody new came, though some are missing
};

/// Blames nobody for being slow.
class StartJudge {
 public:
  /// `on_host` ranks are to come to this host, of `in_all`; 0: not known.
  StartJudge(int on_host, int in_all, const StartPatience& patience)
      : on_host_(on_host), in_all_(in_all), patience_(patience) {}

  std::optional<AbsentRank> judge(const std::vector<JobRank>& ranks);

 private:
  int number_of_missing() const;

  const int on_host_, in_all_;
  const StartPatience patience_;
  std::map<int, int> bad_looks_;  // in a row, by rank: of all that were seen
  int short_looks_ = 0;           // in a row, that nobody new came, though some are missing
};

}  // namespace weft::launch
