// Algorithms for groups of 2^k members, in a group of any size: of the members beyond, each gives all it has to a
// neighbour at first, and gets the result in the end.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "weft/comm/schedules/schedule.h"

namespace weft::comm {

/// A member's place in the group of 2^k members that do the work.
class PowerOfTwo {
 public:
  PowerOfTwo(int member, int size)
      : core_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))), beyond_(size - core_), member_(member) {}

  int core() const { return core_; }
  /// Of the first 2 * beyond members each second one does.
  bool stands_aside() const { return has_neighbour() && member_ % 2 == 1; }
  int place() const { return has_neighbour() ? member_ / 2 : member_ - beyond_; }
  int member_at(int place) const { return place < beyond_ ? 2 * place : place + beyond_; }

  /// All that a member does that stands aside, in the slots `give` and `give + 1`.
  void add_aside(Schedule& schedule, int32_t give) const {
    const int32_t given = add_action(schedule, ActionKind::send, member_ - 1, give, 0, schedule.elements);
    add_action(schedule, ActionKind::receive_copy, member_ - 1, give + 1, 0, schedule.elements, {given});
  }
  /// Takes what a neighbour gives; returns the action, -1 where there is none.
  int32_t take(Schedule& schedule, int32_t give) const {
    if (!has_neighbour()) return -1;
    return add_action(schedule, ActionKind::receive_add, member_ + 1, give, 0, schedule.elements);
  }
  /// Gives the result to the neighbour, where there is one.
  void give_back(Schedule& schedule, int32_t give, const std::vector<int32_t>& after) const {
    if (has_neighbour()) add_action(schedule, ActionKind::send, member_ + 1, give + 1, 0, schedule.elements, after);
  }

 private:
  bool has_neighbour() const { return member_ < 2 * beyond_; }

  int core_, beyond_, member_;
};

}  // namespace weft::comm
