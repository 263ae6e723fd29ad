// SIGINT and SIGTERM: the first asks the loop to save and leave, the second leaves at once. SIGUSR1, which mpirun hands
// on to all ranks without ending them itself, asks for the same, however often it comes. SIGPIPE is ignored: Ctrl-C in
// `weft train ... 2>&1 | tee log` ends tee too, and the checkpoint must come all the same.
#pragma once

#include <signal.h>

namespace weft::train {

/// Catches the three signals while it lives and restores their actions afterwards. One at a time. A signal that the
/// process was started to ignore, as by nohup or in the background of a script, stays ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  bool requested() const;

 private:
  struct sigaction old_interrupt_ {
  }, old_terminate_{}, old_request_{}, old_pipe_{};
};

inline constexpr int kInterruptedExitCode = 130;  // 128 + SIGINT, as shells report it

}  // namespace weft::train
