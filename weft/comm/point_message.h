// One message from one rank to another, beside the collectives: prepared once, sent or received in each run by the
// thread that moves messages. Used by collectives.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

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
  void start(void* data, int64_t priority, MessageThread& messages);
  /// Whether it is through; if so the run is over.
  bool collect();

 private:
  const MessageSpec spec_;
  MessageThread::Job job_;
  std::shared_ptr<std::byte> copy_;  // of what is no multiple of 4 bytes, in which runners count; else null
  void* data_ = nullptr;
  bool is_under_way_ = false;
  std::atomic<bool> is_through_ = false;
};

}  // namespace weft::comm
