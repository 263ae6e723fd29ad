// Signals during training. The first SIGINT or SIGTERM asks the loop to save and return; the second ends the process at
// once. SIGHUP (a closed connection) and SIGUSR1 also ask it to save and return, however often they come: mpirun
// forwards SIGUSR1 to all ranks without ending them. SIGPIPE is ignored: Ctrl-C in `weft train ... 2>&1 | tee log` also
// ends tee, and weft must still write its checkpoint.
//
// The handlers run on a stack of their own. oneDNN's matrix multiplication for AVX (jit_avx_gemm_f32) points the stack
// register into a buffer on the heap where the inner dimension is long. A handler on the thread's stack would then
// write its frame over whatever lies before that buffer.
#pragma once

#include <signal.h>

#include <cstddef>
#include <vector>

namespace weft::train {

/// Catches these signals while it lives and restores their actions afterwards. Only one may live at a time. A signal
/// that was ignored when the process started, as under nohup or in the background of a script, stays ignored. Its
/// thread gets the other stack, and gets back what it had. To be made and destroyed by the main thread, which the
/// kernel prefers for the signals of a process.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  bool requested() const;

 private:
  std::vector<std::byte> handler_stack_;
  stack_t old_stack_{};
  struct sigaction old_interrupt_ {
  }, old_terminate_{}, old_hang_up_{}, old_request_{}, old_pipe_{};
};

inline constexpr int kInterruptedExitCode = 130;  // 128 + SIGINT, as shells report it

}  // namespace weft::train
