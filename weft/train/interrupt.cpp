#include "weft/train/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace weft::train {

namespace {

// A signal handler can reach nothing but static storage.
volatile sig_atomic_t interrupts = 0;

void count_interrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts > 1) _exit(kInterruptedExitCode);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupts = 0;
  struct sigaction action {};
  action.sa_handler = count_interrupt;
  action.sa_flags = SA_RESTART;  // a write of a checkpoint goes on
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool InterruptGuard::requested() const { return interrupts > 0; }

}  // namespace weft::train
