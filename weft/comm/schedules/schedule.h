// An all-reduce over messages as plain data: what one member of a group sends and receives, and what each step waits
// for. Functions make schedules (schedules/schedules.h), one runner executes them (runner.h), one simulator times them
// (cost.h), and tests check them without running anything.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::comm {

enum class ActionKind : uint8_t {
  send,          // elements [begin, end) of the buffer
  receive_add,   // and add to them
  receive_copy,  // and overwrite them
  all_reduce,    // of all ranks at once, by the communicator itself (native_all_reduce.h); has no peer
};

struct Action {
  ActionKind kind = ActionKind::send;
  int peer = 0;  // member of the group
  /// What pairs a send with its receive: unique for each pair and direction. Only parts of one message (in_parts) share
  /// a slot: they arrive in the order in which they are sent.
  int32_t slot = 0;
  int64_t begin = 0, end = 0;
  /// Earlier actions of this schedule that have to be over. A receive_add may get its message before, and then adds.
  std::vector<int32_t> after;
};

/// Of one member. Its buffer holds its own numbers at first and the sum over all members in the end: the same bits on
/// all of them.
struct Schedule {
  int64_t elements = 0;
  int32_t slots = 0;  // all slots are below; the same for all members
  std::vector<Action> actions;
};

/// Appends an action, unless it is about no elements; both sides leave out the same ones. Returns its index, or -1.
/// Indices of -1 in `after` count for nothing.
int32_t add_action(Schedule& schedule, ActionKind kind, int peer, int32_t slot, int64_t begin, int64_t end,
                   const std::vector<int32_t>& after = {});

/// Of a message between hosts. Signs of life share the link with messages, and go behind those that are under way. So
/// even where a megabyte takes a second, they come in time.
inline constexpr int64_t kLargestMessageBytes = 1 << 20;

/// The same schedule with messages of at most so many elements: larger ones travel in parts, one behind the other.
Schedule in_parts(const Schedule& schedule, int64_t most_elements);

}  // namespace weft::comm
