// Schedules, executed symbolically: what is in each member's buffer is whose numbers, and how often.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/comm/schedules/schedule.h"

namespace weft::comm {

/// Per element how often each member's number is in it.
using Counts = std::vector<std::map<int, int>>;

/// Executes the schedules symbolically; among what can happen next a draw decides.
class SymbolicRun {
 public:
  /// In the beginning each member has its own number in all elements.
  explicit SymbolicRun(std::vector<Schedule> schedules, uint64_t seed) : schedules_(std::move(schedules)), seed_(seed) {
    for (size_t m = 0; m < schedules_.size(); ++m) {
      buffers_.emplace_back(static_cast<size_t>(schedules_[m].elements), std::map<int, int>{{static_cast<int>(m), 1}});
      is_over_.emplace_back(schedules_[m].actions.size(), false);
    }
  }

  /// Empty, or what went wrong.
  std::string run() {
    for (;;) {
      std::vector<std::pair<size_t, size_t>> possible;
      bool all_over = true;
      for (size_t m = 0; m < schedules_.size(); ++m)
        for (size_t a = 0; a < schedules_[m].actions.size(); ++a) {
          if (is_over_[m][a]) continue;
          all_over = false;
          if (can_happen(m, a)) possible.emplace_back(m, a);
        }
      if (all_over) return messages_.empty() ? "" : "a message that nobody received";
      if (possible.empty()) return "all wait for each other";
      seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
      const auto [m, a] = possible[(seed_ >> 33) % possible.size()];
      if (std::string problem = happen(m, a); !problem.empty()) return problem;
    }
  }

  const std::vector<Counts>& buffers() const { return buffers_; }

 private:
  using Key = std::tuple<int, int, int32_t>;  // from, to, slot

  Key key(size_t m, const Action& action) const {
    const int self = static_cast<int>(m);
    return action.kind == ActionKind::send ? Key{self, action.peer, action.slot} : Key{action.peer, self, action.slot};
  }
  bool can_happen(size_t m, size_t a) const {
    const Action& action = schedules_[m].actions[a];
    for (const int32_t earlier : action.after)
      if (!is_over_[m][static_cast<size_t>(earlier)]) return false;
    return action.kind == ActionKind::send || messages_.contains(key(m, action));
  }
  std::string happen(size_t m, size_t a) {
    const Action& action = schedules_[m].actions[a];
    is_over_[m][a] = true;
    const auto begin = static_cast<size_t>(action.begin), end = static_cast<size_t>(action.end);
    Counts& buffer = buffers_[m];
    if (action.kind == ActionKind::send) {
      if (!used_.insert(key(m, action)).second) return "a slot is used twice";
      messages_[key(m, action)] = Counts(buffer.begin() + action.begin, buffer.begin() + action.end);
      return "";
    }
    const Counts message = messages_.at(key(m, action));
    messages_.erase(key(m, action));
    if (message.size() != end - begin) return "a message of another size";
    for (size_t i = begin; i < end; ++i) {
      if (action.kind == ActionKind::receive_copy) buffer[i].clear();
      for (const auto& [member, count] : message[i - begin]) buffer[i][member] += count;
    }
    return "";
  }

  std::vector<Schedule> schedules_;
  uint64_t seed_;
  std::vector<Counts> buffers_;
  std::vector<std::vector<bool>> is_over_;
  std::map<Key, Counts> messages_;
  std::set<Key> used_;
};

/// Where pieces of different sizes begin, and where the last ends; one of them empty where there are more than two.
inline std::vector<int64_t> uneven_pieces(int size, int64_t elements) {
  std::vector<int64_t> begins{0};
  for (int member = 0; member < size; ++member)
    begins.push_back(begins.back() + (size > 2 && member == 1 ? 0 : elements + member % 3));
  return begins;
}

}  // namespace weft::comm
