#include "weft/comm/links/cost.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include "weft/base/error.h"

namespace weft::comm {

double NativeCosts::share_of(int64_t bytes) const {
  double smaller = 0, larger = kSmallestBytes, before = 0;
  for (size_t index = 0; index < seconds.size() && seconds[index] > 0 && own_seconds[index] > 0; ++index) {
    const double here = seconds[index] / own_seconds[index];
    if (static_cast<double>(bytes) <= larger)
      return index == 0 ? here : before + (static_cast<double>(bytes) - smaller) / (larger - smaller) * (here - before);
    smaller = larger;
    before = here;
    larger *= kStep;
  }
  return std::numeric_limits<double>::infinity();
}

namespace {

/// Both sides of a message: it begins when both are ready and both ports are free.
struct Message {
  int from = 0, to = 0;
  int32_t send = -1, receive = -1;
  int missing = 2;
  double ready = 0;
};

class Simulation {
 public:
  Simulation(const std::vector<Schedule>& schedules, const Links& links, double summed_elements_per_second,
             int64_t element_bytes)
      : schedules_(schedules),
        links_(links),
        summed_per_second_(summed_elements_per_second),
        element_bytes_(static_cast<double>(element_bytes)),
        members_(schedules.size()),
        uplinks_(static_cast<size_t>(std::max(links.groups(), 1))) {
    for (size_t m = 0; m < schedules.size(); ++m) prepare(static_cast<int>(m));
  }

  double run() {
    for (size_t m = 0; m < schedules_.size(); ++m)
      for (size_t a = 0; a < schedules_[m].actions.size(); ++a) {
        const Action& action = schedules_[m].actions[a];
        // A receive_add has a buffer of its own and is there from the beginning; its sum waits.
        if (action.kind == ActionKind::receive_add || action.after.empty()) side_is_ready(m, a, 0);
      }
    double end = 0;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      end = std::max(end, event.seconds);
      if (event.kind == Event::begins)
        begin(messages_[event.index], event.seconds);
      else
        finish(static_cast<size_t>(event.member), event.index, event.seconds);
    }
    check(finished_ == total_, "schedules whose actions wait for each other");
    return end;
  }

 private:
  struct Event {
    enum Kind { ends, begins };
    double seconds;
    Kind kind;
    size_t index;  // of the message that begins, or of the member's action that ends
    int member;
    bool operator<(const Event& other) const {  // the queue gives the largest first
      return std::tie(other.seconds, other.kind, other.member, other.index) < std::tie(seconds, kind, member, index);
    }
  };
  struct Member {
    std::vector<int> missing;     // per action: what it still waits for
    std::vector<double> arrived;  // per receive_add: when its message was there; below 0: not yet
    std::vector<std::vector<int32_t>> successors;
    double sends_until = 0, receives_until = 0, sums_until = 0;
  };

  struct Uplink {
    double out_until = 0, in_until = 0;
  };

  void prepare(int m) {
    const Schedule& schedule = schedules_[static_cast<size_t>(m)];
    Member& member = members_[static_cast<size_t>(m)];
    member.successors.resize(schedule.actions.size());
    member.arrived.resize(schedule.actions.size(), -1);
    total_ += schedule.actions.size();
    for (size_t a = 0; a < schedule.actions.size(); ++a) {
      const Action& action = schedule.actions[a];
      const auto index = static_cast<int32_t>(a);
      member.missing.push_back(static_cast<int>(action.after.size()));
      for (const int32_t earlier : action.after) member.successors[static_cast<size_t>(earlier)].push_back(index);
      const bool sends = action.kind == ActionKind::send;
      const int from = sends ? m : action.peer, to = sends ? action.peer : m;
      const auto [found, is_new] = message_of_.try_emplace({from, to, action.slot}, messages_.size());
      if (is_new) messages_.push_back({.from = from, .to = to});
      (sends ? messages_[found->second].send : messages_[found->second].receive) = index;
    }
  }

  void side_is_ready(size_t m, size_t a, double seconds) {
    const Action& action = schedules_[m].actions[a];
    const bool sends = action.kind == ActionKind::send;
    const int self = static_cast<int>(m);
    const size_t index = message_of_.at({sends ? self : action.peer, sends ? action.peer : self, action.slot});
    Message& message = messages_[index];
    message.ready = std::max(message.ready, seconds);
    if (--message.missing == 0) events_.push({message.ready, Event::begins, index, message.from});
  }

  void begin(const Message& message, double seconds) {
    Member &sender = members_[static_cast<size_t>(message.from)], &receiver = members_[static_cast<size_t>(message.to)];
    const Action& send = schedules_[static_cast<size_t>(message.from)].actions[static_cast<size_t>(message.send)];
    const Action& receive = schedules_[static_cast<size_t>(message.to)].actions[static_cast<size_t>(message.receive)];
    const double start = std::max({seconds, sender.sends_until, receiver.receives_until});
    const double bytes = static_cast<double>(send.end - send.begin) * element_bytes_;
    const LinkCosts& link = links_.of(message.from, message.to);
    double through = start + std::max(link.message_seconds, bytes / link.bytes_per_second);
    const int from_group = links_.group_of(message.from), to_group = links_.group_of(message.to);
    if (from_group != to_group) {
      double& out = uplinks_[static_cast<size_t>(from_group)].out_until;
      double& in = uplinks_[static_cast<size_t>(to_group)].in_until;
      through = std::max({through, pass(out, start, bytes, links_.uplink(from_group)),
                          pass(in, start, bytes, links_.uplink(to_group))});
    }
    sender.sends_until = receiver.receives_until = through;
    const double arrives = through + link.latency_seconds;
    events_.push({through, Event::ends, static_cast<size_t>(message.send), message.from});
    if (receive.kind == ActionKind::receive_copy) {
      events_.push({arrives, Event::ends, static_cast<size_t>(message.receive), message.to});
      return;
    }
    receiver.arrived[static_cast<size_t>(message.receive)] = arrives;
    if (receiver.missing[static_cast<size_t>(message.receive)] == 0) sum(message.to, message.receive, arrives);
  }

  /// When the bytes are through an uplink that is free from `until` on, and takes them from then on or from `start`.
  static double pass(double& until, double start, double bytes, double bytes_per_second) {
    if (bytes_per_second == kUnlimited) return start;
    until = std::max(until, start) + bytes / bytes_per_second;
    return until;
  }

  void sum(int m, int32_t a, double seconds) {
    const Action& action = schedules_[static_cast<size_t>(m)].actions[static_cast<size_t>(a)];
    Member& member = members_[static_cast<size_t>(m)];
    member.sums_until =
        std::max(seconds, member.sums_until) + static_cast<double>(action.end - action.begin) / summed_per_second_;
    events_.push({member.sums_until, Event::ends, static_cast<size_t>(a), m});
  }

  void finish(size_t m, size_t a, double seconds) {
    ++finished_;
    Member& member = members_[m];
    for (const int32_t successor : member.successors[a]) {
      const auto next = static_cast<size_t>(successor);
      if (--member.missing[next] > 0) continue;
      if (schedules_[m].actions[next].kind != ActionKind::receive_add)
        side_is_ready(m, next, seconds);
      else if (member.arrived[next] >= 0)
        sum(static_cast<int>(m), successor, std::max(seconds, member.arrived[next]));
    }
  }

  const std::vector<Schedule>& schedules_;
  const Links& links_;
  const double summed_per_second_, element_bytes_;
  std::vector<Member> members_;
  std::vector<Uplink> uplinks_;  // of each group
  std::vector<Message> messages_;
  std::map<std::tuple<int, int, int32_t>, size_t> message_of_;  // from, to, slot
  std::priority_queue<Event> events_;
  size_t finished_ = 0, total_ = 0;
};

}  // namespace

double simulate(const std::vector<Schedule>& schedules, const Links& links, double summed_elements_per_second,
                int64_t element_bytes) {
  return Simulation(schedules, links, summed_elements_per_second, element_bytes).run();
}

double busiest_seconds(const std::vector<Schedule>& schedules, const Links& links, int64_t element_bytes) {
  struct Busy {
    double sends = 0, receives = 0;
  };
  double most = 0;
  std::vector<Busy> uplinks(static_cast<size_t>(std::max(links.groups(), 1)));
  for (size_t member = 0; member < schedules.size(); ++member) {
    const int self = static_cast<int>(member), group = links.group_of(self);
    Busy busy;
    for (const Action& action : schedules[member].actions) {
      const double bytes = static_cast<double>((action.end - action.begin) * element_bytes);
      const bool sends = action.kind == ActionKind::send;
      const LinkCosts& link = sends ? links.of(self, action.peer) : links.of(action.peer, self);
      (sends ? busy.sends : busy.receives) += std::max(link.message_seconds, bytes / link.bytes_per_second);
      if (links.group_of(action.peer) == group) continue;
      Busy& uplink = uplinks[static_cast<size_t>(group)];
      (sends ? uplink.sends : uplink.receives) += bytes / links.uplink(group);
    }
    most = std::max({most, busy.sends, busy.receives});
  }
  for (const Busy& uplink : uplinks) most = std::max({most, uplink.sends, uplink.receives});
  return most;
}

}  // namespace weft::comm
