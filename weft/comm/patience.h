// Waiting for other ranks: bounded, without burning a core, and with an error that says who was waited for.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "weft/comm/communicator.h"
#include "weft/comm/wait_meter.h"

namespace weft::comm {

struct WaitLimits {
  double silence_seconds = 5;  // of a rank, after which it counts as lost
  double wait_seconds = 600;   // for ranks that live: one may be writing a checkpoint
  WaitMeter* meter = nullptr;  // if any: to which the wait is added
};

/// What a wait is for, as its error says it: "[all_reduce] 'conv1.weight' at step 12 of epoch 3".
struct Purpose {
  std::string_view what;      // "all_reduce"
  std::string_view subject;   // "conv1.weight", or empty
  std::string_view position;  // "step 12 of epoch 3", or empty
};

/// "rank 3 on host 'node2'"
std::string name_of_rank(const Communicator& communicator, int rank);
/// Error(communication): the peer has sent something else than what is received. For communicators.
[[noreturn]] void fail_wrong_size(const Communicator& communicator, int peer, int64_t expected, int64_t got);
/// "[all_reduce] 'conv1.weight' at step 12 of epoch 3"
std::string name_of(const Purpose& purpose);

/// For those who compute for long without waiting for anybody: Error(communication), as a wait gives it, where a rank
/// of the run is lost; then the communicator has been given up.
void require_signs_of_life(Communicator& communicator, double silence_seconds, const Purpose& purpose);

/// One wait. Call pause() after each look that found nothing: it spins at first, sleeps later, and throws
/// Error(communication) where any rank of the run is lost, or `awaited` (-1: nobody in particular) is late; then the
/// communicator has been given up.
class Patience {
 public:
  Patience(Communicator& communicator, const WaitLimits& limits, const Purpose& purpose)
      : communicator_(communicator), limits_(limits), purpose_(purpose) {}
  void pause(int awaited);
  /// Only the check, now and then, for those who sleep otherwise.
  void check(int awaited);
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  Communicator& communicator_;
  const WaitLimits limits_;
  const Purpose purpose_;
  Clock::time_point begin_ = Clock::now(), last_check_ = begin_;
  int looks_ = 0;
};

/// Waits until the message is through.
void await(Communicator& communicator, Ticket ticket, int peer, const WaitLimits& limits, const Purpose& purpose);

}  // namespace weft::comm
