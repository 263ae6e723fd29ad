#include "weft/comm/point_message.h"

#include <climits>
#include <utility>

#include "weft/base/error.h"
#include "weft/comm/patience.h"
#include "weft/comm/tags.h"

namespace weft::comm {

namespace {

std::string_view what(const MessageSpec& spec) { return spec.sends ? "send" : "receive"; }

Schedule schedule_of(const MessageSpec& spec) {
  // Also where there is nothing to send: the peer may expect something.
  const ActionKind kind = spec.sends ? ActionKind::send : ActionKind::receive_copy;
  return {.elements = spec.bytes,
          .slots = 1,
          .actions = {{.kind = kind, .peer = 0, .slot = 0, .begin = 0, .end = spec.bytes, .after = {}}}};
}

const MessageSpec& checked(const Communicator& communicator, const MessageSpec& spec) {
  if (spec.peer < 0 || spec.peer >= communicator.size() || spec.peer == communicator.rank())
    fail(ErrorKind::communication, "[{}] '{}': rank {} has no peer {}; there are ranks 0 to {}", what(spec), spec.name,
         communicator.rank(), spec.peer, communicator.size() - 1);
  if (spec.tag < 0 || spec.tag >= kMessageTags)
    fail(ErrorKind::communication, "[{}] '{}': tag {} is none of 0 to {}", what(spec), spec.name, spec.tag,
         kMessageTags - 1);
  if (spec.bytes > INT_MAX)
    fail(ErrorKind::communication, "[{}] '{}': {} bytes are more than a message can have; split the tensor", what(spec),
         spec.name, spec.bytes);
  return spec;
}

}  // namespace

PointMessage::PointMessage(Communicator& communicator, const MessageSpec& spec) : spec_(checked(communicator, spec)) {
  job_.name = name_of({what(spec_), spec_.name, {}});
  job_.is_limited = false;
  job_.runner = std::make_unique<ScheduleRunner>(communicator, schedule_of(spec), std::vector<int>{spec.peer},
                                                 DType::u8, kFirstMessageTag - kFirstCollectiveTag + spec.tag);
  job_.deliver = [this] { is_through_.store(true, std::memory_order_release); };
}

void PointMessage::start(void* data, int64_t priority, MessageThread& messages) {
  is_through_ = false;
  is_under_way_ = true;
  job_.priority = priority;
  job_.buffer = static_cast<float*>(data);
  messages.submit(job_);
}

bool PointMessage::collect() {
  if (!is_through_.load(std::memory_order_acquire)) return false;
  is_under_way_ = false;
  return true;
}

}  // namespace weft::comm
