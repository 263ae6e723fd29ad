// SIGINT and SIGTERM: the first asks the loop to save and leave, the second leaves at once.
#pragma once

namespace weft::train {

/// Catches both signals while it lives and gives them back afterwards. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  bool requested() const;
};

inline constexpr int kInterruptedExitCode = 130;  // 128 + SIGINT, as shells report it

}  // namespace weft::train
