#include "weft/comm/runner.h"

#include <utility>

#include "weft/base/error.h"
#include "weft/comm/native_all_reduce.h"
#include "weft/comm/sum.h"
#include "weft/comm/tags.h"
#include "weft/tensor/tensor.h"

namespace weft::comm {

namespace {

/// What is sent or received straight from or to the buffer.
bool is_direct(const Action& action, DType wire) {
  return unpacked_size(wire) != 2 && action.kind != ActionKind::receive_add;
}

int64_t scratch_bytes(const Action& action, DType wire) {
  return is_direct(action, wire) ? 0 : align_up(byte_size(wire, action.end - action.begin));
}

}  // namespace

int64_t scratch_bytes(const Schedule& schedule, DType wire) {
  int64_t bytes = 0;
  for (const Action& action : schedule.actions) bytes += scratch_bytes(action, wire);
  return bytes;
}

ScheduleRunner::ScheduleRunner(Communicator& communicator, const Schedule& schedule, std::vector<int> ranks, DType wire,
                               int first_tag)
    : communicator_(communicator),
      schedule_(in_parts(schedule, kLargestMessageBytes / unpacked_size(wire))),
      ranks_(std::move(ranks)),
      wire_(wire),
      first_tag_(first_tag),
      successors_(schedule_.actions.size()),
      states_(schedule_.actions.size()) {
  check(kFirstCollectiveTag + first_tag_ + schedule_.slots <= kTags, "more messages in a step than there are tags");
  int64_t bytes = 0;
  for (size_t a = 0; a < schedule_.actions.size(); ++a) {
    const Action& action = schedule_.actions[a];
    for (const int32_t earlier : action.after)
      successors_[static_cast<size_t>(earlier)].push_back(static_cast<int32_t>(a));
    check(wire_ != DType::u8 || action.kind == ActionKind::send || action.kind == ActionKind::receive_copy,
          "bytes are summed");
    scratch_offset_.push_back(is_direct(action, wire_) ? -1 : bytes);
    bytes += scratch_bytes(action, wire_);
  }
  scratch_ = allocate_aligned(bytes);
  under_way_.reserve(schedule_.actions.size());
  finished_.reserve(schedule_.actions.size());
  sends_.reserve(schedule_.actions.size());
}

void ScheduleRunner::begin(float* buffer) {
  buffer_ = buffer;
  missing_ = schedule_.actions.size();
  under_way_.clear();
  sends_.clear();
  next_send_ = 0;
  bytes_under_way_ = 0;
  for (size_t a = 0; a < states_.size(); ++a)
    states_[a] = {
        .missing = static_cast<int32_t>(schedule_.actions[a].after.size()), .has_arrived = false, .ticket = {}};
  for (size_t a = 0; a < states_.size(); ++a)
    if (states_[a].missing == 0 || schedule_.actions[a].kind == ActionKind::receive_add) start(a);
}

int64_t ScheduleRunner::bytes_of(size_t a) const {
  const Action& action = schedule_.actions[a];
  return byte_size(wire_, action.end - action.begin);
}

std::byte* ScheduleRunner::data_of(size_t a) const {
  return scratch_offset_[a] < 0 ? reinterpret_cast<std::byte*>(buffer_) + byte_size(wire_, schedule_.actions[a].begin)
                                : scratch(a);
}

int ScheduleRunner::tag_of(size_t a) const { return kFirstCollectiveTag + first_tag_ + schedule_.actions[a].slot; }

void ScheduleRunner::start(size_t a) {
  const Action& action = schedule_.actions[a];
  if (action.kind == ActionKind::send) {
    sends_.push_back(static_cast<int32_t>(a));
    return;
  }
  if (action.kind == ActionKind::all_reduce) {
    NativeAllReduce* const native = find_native_all_reduce(communicator_);
    check(native != nullptr && wire_ == DType::f32, "a schedule for another communicator");
    states_[a].ticket = native->all_reduce({buffer_ + action.begin, static_cast<size_t>(action.end - action.begin)});
    under_way_.push_back(static_cast<int32_t>(a));
    return;
  }
  states_[a].ticket = communicator_.receive(ranks_[static_cast<size_t>(action.peer)], tag_of(a),
                                            {data_of(a), static_cast<size_t>(bytes_of(a))});
  under_way_.push_back(static_cast<int32_t>(a));
}

void ScheduleRunner::send_next() {
  const auto a = static_cast<size_t>(sends_[next_send_++]);
  const Action& action = schedule_.actions[a];
  if (scratch_offset_[a] >= 0) narrow_from_f32(wire_, buffer_ + action.begin, scratch(a), action.end - action.begin);
  states_[a].ticket = communicator_.send(ranks_[static_cast<size_t>(action.peer)], tag_of(a),
                                         {data_of(a), static_cast<size_t>(bytes_of(a))});
  bytes_under_way_ += bytes_of(a);
  under_way_.push_back(static_cast<int32_t>(a));
}

void ScheduleRunner::finish(size_t first) {
  finished_.push_back(static_cast<int32_t>(first));
  while (!finished_.empty()) {
    const auto a = static_cast<size_t>(finished_.back());
    finished_.pop_back();
    const Action& action = schedule_.actions[a];
    const int64_t count = action.end - action.begin;
    if (action.kind == ActionKind::receive_add)
      add_to_f32(wire_, scratch(a), buffer_ + action.begin, count);
    else if (action.kind == ActionKind::receive_copy && scratch_offset_[a] >= 0)
      widen_to_f32(wire_, scratch(a), buffer_ + action.begin, count);
    --missing_;
    for (const int32_t successor : successors_[a]) {
      State& next = states_[static_cast<size_t>(successor)];
      if (--next.missing > 0) continue;
      if (schedule_.actions[static_cast<size_t>(successor)].kind != ActionKind::receive_add)
        start(static_cast<size_t>(successor));
      else if (next.has_arrived)
        finished_.push_back(successor);
    }
  }
}

bool ScheduleRunner::advance() {
  for (size_t i = 0; i < under_way_.size();) {
    const auto a = static_cast<size_t>(under_way_[i]);
    State& state = states_[a];
    if (!communicator_.is_done(state.ticket)) {
      ++i;
      continue;
    }
    under_way_[i] = under_way_.back();
    under_way_.pop_back();
    state.has_arrived = true;
    if (schedule_.actions[a].kind == ActionKind::send) bytes_under_way_ -= bytes_of(a);
    if (state.missing == 0) finish(a);
  }
  return missing_ == 0;
}

}  // namespace weft::comm
