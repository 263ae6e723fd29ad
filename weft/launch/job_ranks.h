// The ranks of this process's job on this host, as /proc shows them: what can be seen of each other before MPI has
// started, and of one that is stopped.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace weft::launch {

struct JobRank {
  int rank = 0;
  pid_t process = -1;  // which is to become, or has become, a rank
  bool is_stopped = false;
  friend bool operator==(const JobRank&, const JobRank&) = default;
};

class JobRanks {
 public:
  /// Of this process, or of the process `member`, which was started by the same launcher as its parents.
  explicit JobRanks(pid_t member);

  /// In the order of their numbers; none where the launcher cannot be seen, as from within a container.
  std::vector<JobRank> look();

 private:
  int rank_of(pid_t process);

  std::filesystem::path program_;  // of the member
  std::string job_;                // the value of PMIX_NAMESPACE; empty: not known
  pid_t launcher_ = -1;            // the parent of all ranks of this host
  std::map<pid_t, int> ranks_;     // that are known
};

/// What the launcher has told this process of the job; 0 where it has not.
int told_rank();
int told_ranks();
int told_ranks_on_host();
/// Its number on its host; 0 where it was not told.
int told_local_rank();

}  // namespace weft::launch
