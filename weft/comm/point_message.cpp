#include "weft/comm/point_message.h"

#include <climits>
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/comm/tags.h"

namespace weft::comm {

namespace {

constexpr int64_t kUnit = sizeof(float);

std::string_view what(const MessageSpec& spec) { return spec.sends ? "send" : "receive"; }

Schedule schedule_of(const MessageSpec& spec) {
  Schedule schedule{.elements = (spec.bytes + kUnit - 1) / kUnit, .slots = 1, .actions = {}};
  add_action(schedule, spec.sends ? ActionKind::send : ActionKind::receive_copy, /*peer=*/0, /*slot=*/0, 0,
             schedule.elements);
  return schedule;
}

const MessageSpec& checked(const Communicator& communicator, const MessageSpec& spec) {
  if (spec.peer < 0 || spec.peer >= communicator.size() || spec.peer == communicator.rank())
    fail(ErrorKind::communication, "[{}] '{}': rank {} has no peer {}; there are ranks 0 to {}", what(spec), spec.name,
         communicator.rank(), spec.peer, communicator.size() - 1);
  if (spec.tag < 0 || spec.tag >= kMessageTags)
    fail(ErrorKind::communication, "[{}] '{}': tag {} is none of 0 to {}", what(spec), spec.name, spec.tag,
         kMessageTags - 1);
  if (spec.bytes > INT_MAX - kUnit)
    fail(ErrorKind::communication, "[{}] '{}': {} bytes are more than a message can have; split the tensor", what(spec),
         spec.name, spec.bytes);
  return spec;
}

}  // namespace

PointMessage::PointMessage(Communicator& communicator, const MessageSpec& spec) : spec_(checked(communicator, spec)) {
  Schedule schedule = schedule_of(spec);
  if (spec.bytes % kUnit != 0) copy_ = allocate_aligned(schedule.elements * kUnit);
  job_.runner = std::make_unique<ScheduleRunner>(communicator, std::move(schedule), std::vector<int>{spec.peer},
                                                 DType::f32, kFirstMessageTag - kFirstCollectiveTag + spec.tag);
  job_.deliver = [this] { is_through_.store(true, std::memory_order_release); };
}

void PointMessage::start(void* data, int64_t priority, MessageThread& messages) {
  data_ = data;
  if (copy_ != nullptr && spec_.sends) std::memcpy(copy_.get(), data, static_cast<size_t>(spec_.bytes));
  is_through_ = false;
  is_under_way_ = true;
  job_.priority = priority;
  job_.buffer = reinterpret_cast<float*>(copy_ != nullptr ? copy_.get() : static_cast<std::byte*>(data));
  messages.submit(job_);
}

bool PointMessage::collect() {
  if (!is_through_.load(std::memory_order_acquire)) return false;
  if (copy_ != nullptr && !spec_.sends) std::memcpy(data_, copy_.get(), static_cast<size_t>(spec_.bytes));
  is_under_way_ = false;
  return true;
}

}  // namespace weft::comm
