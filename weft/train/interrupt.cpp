#include "weft/train/interrupt.h"

#include <unistd.h>

#include <algorithm>

namespace weft::train {

namespace {

// A signal handler can reach nothing but static storage.
volatile sig_atomic_t interrupts = 0;

void count_interrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts > 1) _exit(kInterruptedExitCode);
}

void note_request(int) {
  if (interrupts == 0) interrupts = 1;
}

void catch_unless_ignored(int number, void (*handler)(int), struct sigaction& old_action) {
  sigaction(number, nullptr, &old_action);
  if (old_action.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // a write of a checkpoint goes on
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

/// A frame holds all vector registers: 11 KiB with AMX, which the system's figure counts.
size_t handler_stack_bytes() {
  constexpr long kLeast = 64 << 10;
  return static_cast<size_t>(std::max(kLeast, sysconf(_SC_SIGSTKSZ)));
}

}  // namespace

InterruptGuard::InterruptGuard() : handler_stack_(handler_stack_bytes()) {
  interrupts = 0;
  stack_t stack{};
  stack.ss_sp = handler_stack_.data();
  stack.ss_size = handler_stack_.size();
  sigaltstack(&stack, &old_stack_);
  catch_unless_ignored(SIGINT, count_interrupt, old_interrupt_);
  catch_unless_ignored(SIGTERM, count_interrupt, old_terminate_);
  catch_unless_ignored(SIGHUP, note_request, old_hang_up_);  // the connection closed; nohup ignores it
  catch_unless_ignored(SIGUSR1, note_request, old_request_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &old_pipe_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
  sigaction(SIGHUP, &old_hang_up_, nullptr);
  sigaction(SIGUSR1, &old_request_, nullptr);
  sigaction(SIGPIPE, &old_pipe_, nullptr);
  sigaltstack(&old_stack_, nullptr);
}

bool InterruptGuard::requested() const { return interrupts > 0; }

}  // namespace weft::train
