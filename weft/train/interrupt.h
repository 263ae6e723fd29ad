// Signals during training. The first SIGINT or SIGTERM asks the loop to save and return; the second ends the process at
// once. SIGHUP (a closed connection) and SIGUSR1 also ask it to save and return, however often they come: mpirun
// forwards SIGUSR1 to all ranks without ending them. SIGPIPE is ignored: Ctrl-C in `weft train ... 2>&1 | tee log` also
// ends tee, and weft must still write its checkpoint.
#pragma once

#include <signal.h>

namespace weft::train {

/// Catches these signals while it lives and restores their actions afterwards. Only one may live at a time. A signal
/// that was ignored when the process started, as under nohup or in the background of a script, stays ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  bool requested() const;

 private:
  struct sigaction old_interrupt_ {
  }, old_terminate_{}, old_hang_up_{}, old_request_{}, old_pipe_{};
};

inline constexpr int kInterruptedExitCode = 130;  // 128 + SIGINT, as shells report it

}  // namespace weft::train
