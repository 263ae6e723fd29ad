// Executes one member's schedule over a communicator, step by step, without blocking and without allocating. Receives
// begin as soon as they can; when a message is sent decides the caller, who has others that wait for the same link.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/schedules/schedule.h"
#include "weft/tensor/dtype.h"

namespace weft::comm {

/// Of memory that a runner of the schedule takes: for what it receives and adds, and for what is narrower on the way.
int64_t scratch_bytes(const Schedule& schedule, DType wire);

/// Sums are kept in f32; messages travel in `wire`, f32 or bf16. With u8 it moves bytes, of which nothing is summed.
class ScheduleRunner {
 public:
  /// `ranks`: of each member. `first_tag`: of the schedule's slots, which take the tags that follow.
  ScheduleRunner(Communicator& communicator, const Schedule& schedule, std::vector<int> ranks, DType wire,
                 int first_tag);

  /// The buffer holds schedule.elements numbers, and must stay until advance() was true.
  void begin(float* buffer);
  /// Does what can be done now, but for sending; true when everything is over.
  bool advance();
  /// Whether there is a message to be sent now.
  bool can_send() const { return next_send_ < sends_.size(); }
  /// Begins to send the first of them.
  void send_next();
  /// Bytes of messages that are being sent.
  int64_t bytes_under_way() const { return bytes_under_way_; }
  /// Actions that are not over.
  size_t missing() const { return missing_; }

 private:
  struct State {
    int32_t missing = 0;  // of what it waits for
    bool has_arrived = false;
    Ticket ticket;
  };

  std::byte* scratch(size_t action) const { return scratch_.get() + scratch_offset_[action]; }
  int64_t bytes_of(size_t action) const;
  std::byte* data_of(size_t action) const;
  int tag_of(size_t action) const;
  void start(size_t action);
  void finish(size_t action);

  Communicator& communicator_;
  const Schedule schedule_;
  const std::vector<int> ranks_;
  const DType wire_;
  const int first_tag_;
  std::vector<std::vector<int32_t>> successors_;
  std::vector<int64_t> scratch_offset_;  // per action; -1: the buffer itself is sent or received
  std::shared_ptr<std::byte> scratch_;
  float* buffer_ = nullptr;
  std::vector<State> states_;
  std::vector<int32_t> sends_;  // that could begin so far, in this order
  size_t next_send_ = 0;        // the first of them that has not begun
  int64_t bytes_under_way_ = 0;
  std::vector<int32_t> under_way_;  // actions whose messages are
  std::vector<int32_t> finished_;   // whose successors have not been told yet
  size_t missing_ = 0;              // actions
};

}  // namespace weft::comm
