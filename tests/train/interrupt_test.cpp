// Signals: counted while a guard lives, otherwise as they were.
#include "weft/train/interrupt.h"

#include <gtest/gtest.h>

namespace weft::train {
namespace {

volatile sig_atomic_t own_handler_calls = 0;
void own_handler(int) { own_handler_calls = own_handler_calls + 1; }

TEST(InterruptGuard, CatchesAndRestores) {
  signal(SIGTERM, own_handler);
  {
    const InterruptGuard guard;
    EXPECT_FALSE(guard.requested());
    raise(SIGTERM);
    EXPECT_TRUE(guard.requested());
  }
  EXPECT_EQ(own_handler_calls, 0);
  raise(SIGTERM);
  EXPECT_EQ(own_handler_calls, 1);
  signal(SIGTERM, SIG_DFL);
}

TEST(InterruptGuard, ARequestMayComeSeveralTimes) {
  signal(SIGUSR1, own_handler);
  own_handler_calls = 0;
  {
    const InterruptGuard guard;
    raise(SIGUSR1);
    EXPECT_TRUE(guard.requested());
    raise(SIGUSR1);
    EXPECT_TRUE(guard.requested());
  }
  EXPECT_EQ(own_handler_calls, 0);
  raise(SIGUSR1);
  EXPECT_EQ(own_handler_calls, 1);
  signal(SIGUSR1, SIG_DFL);
}

TEST(InterruptGuard, NobodyWhoReadsIsNoReasonToEnd) {
  signal(SIGPIPE, own_handler);
  own_handler_calls = 0;
  {
    const InterruptGuard guard;
    raise(SIGPIPE);
    EXPECT_FALSE(guard.requested());
  }
  EXPECT_EQ(own_handler_calls, 0);
  raise(SIGPIPE);
  EXPECT_EQ(own_handler_calls, 1);
  signal(SIGPIPE, SIG_DFL);
}

TEST(InterruptGuard, ItsHandlersRunOnAStackOfTheirOwn) {
  stack_t before{}, during{}, after{};
  sigaltstack(nullptr, &before);
  {
    const InterruptGuard guard;
    sigaltstack(nullptr, &during);
    EXPECT_EQ(during.ss_flags & SS_DISABLE, 0);
    EXPECT_GE(during.ss_size, size_t{64} << 10);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
      struct sigaction action {};
      sigaction(number, nullptr, &action);
      EXPECT_NE(action.sa_flags & SA_ONSTACK, 0) << number;
    }
  }
  sigaltstack(nullptr, &after);
  EXPECT_EQ(after.ss_sp, before.ss_sp);
  EXPECT_EQ(after.ss_flags, before.ss_flags);
}

TEST(InterruptGuard, WhatIsIgnoredStaysIgnored) {
  signal(SIGINT, SIG_IGN);
  const InterruptGuard guard;
  raise(SIGINT);
  EXPECT_FALSE(guard.requested());
  signal(SIGINT, SIG_DFL);
}

}  // namespace
}  // namespace weft::train
