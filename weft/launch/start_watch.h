// Bounds the time in which the ranks find each other: MPI itself waits for ever for one that is stopped or has ended
// before.
#pragma once

#include <sys/types.h>

#include <thread>

namespace weft::launch {

/// While it lives, a small process beside each of the first ranks of a host looks at /proc: a rank of the host that is
/// stopped, or has ended, for six seconds is named, and what is stopped is ended, so that the launcher ends the job. It
/// is a process of its own, as a rank that is stopped cannot say so; where its own rank is killed it says that and
/// ends. A rank that is merely slow is waited for: whatever the reason, this process ends after two minutes.
class StartWatch {
 public:
  /// Before this process has threads; `exit_code` is what it ends with.
  explicit StartWatch(int exit_code);
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

 private:
  pid_t watcher_ = -1;
  int found_ = -1;       // a pipe, on which the watcher tells that somebody does not come
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace weft::launch
