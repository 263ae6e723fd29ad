// One message from one rank to another, beside the collectives: prepared once, sent or received in each run by the
// thread that moves messages. Used by collectives.cpp.
#pragma once

#include <atomic>

#include "weft/comm/collectives.h"
#include "weft/comm/message_thread.h"

namespace weft::comm {

class PointMessage {
 public:
  /// Error(communication) where there is no such peer.
  PointMessage(Communicator& communicator, const MessageSpec& spec);

  const MessageSpec& spec() const { return spec_; }
  bool is_under_way() const { return is_under_way_; }
  /// Hands it to the thread, which is to be woken. `data`: spec.bytes bytes, to be left alone until collect() was true.
  /// A message of another size is found by who receives it: Error(communication) naming the peer and both sizes.
  void start(void* data, int64_t priority, MessageThread& messages);
  /// Whether it is through; if so the run is over.
  bool collect();

 private:
  const MessageSpec spec_;
  MessageThread::Job job_;
  bool is_under_way_ = false;
  std::atomic<bool> is_through_ = false;
};

}  // namespace weft::comm
