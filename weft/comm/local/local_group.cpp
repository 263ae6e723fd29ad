#include "weft/comm/local/local_group.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "weft/base/error.h"
#include "weft/comm/patience.h"
#include "weft/tensor/tensor.h"

namespace weft::comm {

namespace {

using Clock = std::chrono::steady_clock;

/// A message that only one side has come for. One of the two pointers is set.
struct Pending {
  int tag = 0;
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  size_t bytes = 0;
  int64_t ticket = -1;
};

/// From one rank to another, each in the order in which they came.
struct Channel {
  std::vector<Pending> sends, receives;
};

enum class TicketState : uint8_t { unused, under_way, done };

struct TicketRecord {
  TicketState state = TicketState::unused;
  int wrong_peer = -1;  // whose message had another size
  size_t expected = 0, got = 0;
};

struct RankState {
  std::vector<TicketRecord> tickets;
  std::vector<int64_t> unused_tickets;
  std::optional<Clock::time_point> silent_since;
  std::map<std::vector<int>, int64_t> shares = {};  // how often it called share() with those ranks
  int64_t through = 0;                              // messages so far
};

class Parts final : public SharedMemory {
 public:
  Parts(int64_t bytes, int count) : bytes_(bytes) {
    for (int part = 0; part < count; ++part) parts_.push_back(allocate_aligned(bytes));
  }
  int64_t bytes() const override { return bytes_; }
  std::byte* part(int local_rank) const override { return parts_[static_cast<size_t>(local_rank)].get(); }

 private:
  int64_t bytes_;
  std::vector<std::shared_ptr<std::byte>> parts_;
};

/// Shared memory that not all ranks of its host have come for yet.
struct Sharing {
  std::shared_ptr<Parts> parts;
  int missing = 0;
};

}  // namespace

struct LocalGroup::Impl {
  std::vector<Member> members;
  std::vector<int> ranks_of_host;  // how many
  std::vector<std::unique_ptr<Communicator>> communicators;

  mutable std::mutex mutex;  // guards what follows
  std::vector<RankState> ranks;
  std::vector<Channel> channels;                                     // from * size + to
  std::map<std::pair<std::vector<int>, int64_t>, Sharing> sharings;  // by the ranks and the number of their call

  RankState& state(int rank) { return ranks[static_cast<size_t>(rank)]; }
  Channel& channel(int from, int to) {
    return channels[static_cast<size_t>(from) * members.size() + static_cast<size_t>(to)];
  }

  void require_alive(int rank) {
    if (state(rank).silent_since) fail(ErrorKind::communication, "rank {} was silenced", rank);
  }

  int64_t take_ticket(int rank) {
    RankState& mine = state(rank);
    if (mine.unused_tickets.empty()) {
      mine.tickets.emplace_back();
      mine.unused_tickets.push_back(static_cast<int64_t>(mine.tickets.size()) - 1);
    }
    const int64_t ticket = mine.unused_tickets.back();
    mine.unused_tickets.pop_back();
    mine.tickets[static_cast<size_t>(ticket)] = {.state = TicketState::under_way};
    return ticket;
  }

  TicketRecord& record(int rank, int64_t ticket) { return state(rank).tickets[static_cast<size_t>(ticket)]; }
  void finish(int rank, int64_t ticket) {
    record(rank, ticket).state = TicketState::done;
    ++state(rank).through;
  }

  void silence(int rank) {
    const std::lock_guard lock(mutex);
    if (state(rank).silent_since) return;
    state(rank).silent_since = Clock::now();
    for (int peer = 0; peer < static_cast<int>(members.size()); ++peer) {
      channel(rank, peer).sends.clear();
      channel(peer, rank).receives.clear();
    }
  }

  /// Joins the message with the first of the other side that has its tag, or queues it.
  void meet(int from, int to, Pending message, std::vector<Pending>& own_side, std::vector<Pending>& other_side) {
    const auto match = std::find_if(other_side.begin(), other_side.end(),
                                    [&](const Pending& other) { return other.tag == message.tag; });
    if (match == other_side.end()) {
      own_side.push_back(message);
      return;
    }
    const Pending &sent = message.source != nullptr ? message : *match,
                  &received = &sent == &message ? *match : message;
    TicketRecord& receiver = record(to, received.ticket);
    if (const size_t bytes = std::min(sent.bytes, received.bytes); bytes > 0)
      std::memcpy(received.target, sent.source, bytes);
    if (sent.bytes != received.bytes) {
      receiver.wrong_peer = from;
      receiver.expected = received.bytes;
      receiver.got = sent.bytes;
    }
    finish(from, sent.ticket);
    finish(to, received.ticket);
    other_side.erase(match);
  }
};

class LocalGroup::Rank final : public Communicator {
 public:
  Rank(Impl& group, int rank) : group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  const std::vector<Member>& members() const override { return group_.members; }

  Ticket send(int peer, int tag, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(group_.mutex);
    group_.require_alive(rank_);
    const int64_t ticket = group_.take_ticket(rank_);
    Channel& channel = group_.channel(rank_, peer);
    group_.meet(rank_, peer, {tag, bytes.data(), nullptr, bytes.size(), ticket}, channel.sends, channel.receives);
    return {ticket};
  }

  Ticket receive(int peer, int tag, std::span<std::byte> bytes) override {
    const std::lock_guard lock(group_.mutex);
    group_.require_alive(rank_);
    const int64_t ticket = group_.take_ticket(rank_);
    Channel& channel = group_.channel(peer, rank_);
    group_.meet(peer, rank_, {tag, nullptr, bytes.data(), bytes.size(), ticket}, channel.receives, channel.sends);
    return {ticket};
  }

  int64_t progress() override {  // they move at once
    const std::lock_guard lock(group_.mutex);
    return group_.state(rank_).through;
  }

  bool is_done(Ticket ticket) override {
    const std::lock_guard lock(group_.mutex);
    group_.require_alive(rank_);
    TicketRecord& record = group_.record(rank_, ticket.id);
    weft::check(record.state != TicketState::unused, "a message is asked for after it was done");
    if (record.state != TicketState::done) return false;
    record.state = TicketState::unused;
    group_.state(rank_).unused_tickets.push_back(ticket.id);
    if (record.wrong_peer >= 0)
      fail_wrong_size(*this, record.wrong_peer, static_cast<int64_t>(record.expected),
                      static_cast<int64_t>(record.got));
    return true;
  }

  using Communicator::share;
  std::shared_ptr<SharedMemory> share(int64_t bytes, const std::vector<int>& ranks) override {
    const std::lock_guard lock(group_.mutex);
    group_.require_alive(rank_);
    const auto count = static_cast<int>(ranks.size());
    const std::pair<std::vector<int>, int64_t> key{ranks, group_.state(rank_).shares[ranks]++};
    Sharing& sharing = group_.sharings[key];
    if (sharing.parts == nullptr) sharing = {std::make_shared<Parts>(bytes, count), count};
    if (sharing.parts->bytes() != bytes)
      fail(ErrorKind::communication, "rank {} shares {} bytes where another one of its host shares {}", rank_, bytes,
           sharing.parts->bytes());
    const std::shared_ptr<SharedMemory> parts = sharing.parts;
    if (--sharing.missing == 0) group_.sharings.erase(key);
    return parts;
  }

  void give_up() override { group_.silence(rank_); }

  double seconds_silent(int peer) const override {
    const std::lock_guard lock(group_.mutex);
    const auto& since = group_.state(peer).silent_since;
    return since ? std::chrono::duration<double>(Clock::now() - *since).count() : 0;
  }

 private:
  Impl& group_;
  const int rank_;
};

LocalGroup::LocalGroup(const std::vector<std::string>& host_of_rank) : impl_(std::make_unique<Impl>()) {
  std::vector<std::string> hosts;
  for (const std::string& host : host_of_rank) {
    const auto index = static_cast<size_t>(std::find(hosts.begin(), hosts.end(), host) - hosts.begin());
    if (index == hosts.size()) {
      hosts.push_back(host);
      impl_->ranks_of_host.push_back(0);
    }
    impl_->members.push_back({.host = host,
                              .host_index = static_cast<int>(index),
                              .local_rank = impl_->ranks_of_host[index]++,
                              .process = getpid()});
  }
  impl_->ranks.resize(host_of_rank.size());
  impl_->channels.resize(host_of_rank.size() * host_of_rank.size());
  for (int rank = 0; rank < size(); ++rank) impl_->communicators.push_back(std::make_unique<Rank>(*impl_, rank));
}

LocalGroup::~LocalGroup() = default;

int LocalGroup::size() const { return static_cast<int>(impl_->members.size()); }

Communicator& LocalGroup::communicator(int rank) { return *impl_->communicators[static_cast<size_t>(rank)]; }

void LocalGroup::silence(int rank) { impl_->silence(rank); }

namespace {

struct Outcome {
  std::vector<std::exception_ptr> exceptions;  // by rank
  std::exception_ptr first;                    // in time: the others' may follow from it
};

Outcome outcome_of_ranks(LocalGroup& group, const std::function<void(Communicator&)>& body) {
  Outcome outcome;
  outcome.exceptions.resize(static_cast<size_t>(group.size()));
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < group.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(group.communicator(rank));
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          outcome.exceptions[static_cast<size_t>(rank)] = std::current_exception();
          if (outcome.first == nullptr) outcome.first = std::current_exception();
        }
        group.silence(rank);
      }
    });
  threads.clear();  // joins
  return outcome;
}

}  // namespace

std::vector<std::string> errors_of_ranks(LocalGroup& group, const std::function<void(Communicator&)>& body) {
  std::vector<std::string> messages;
  for (const std::exception_ptr& exception : outcome_of_ranks(group, body).exceptions) {
    messages.emplace_back();
    if (exception == nullptr) continue;
    try {
      std::rethrow_exception(exception);
    } catch (const std::exception& error) {
      messages.back() = error.what();
    }
  }
  return messages;
}

void run_ranks(const std::vector<std::string>& host_of_rank, const std::function<void(Communicator&)>& body) {
  LocalGroup group(host_of_rank);
  const Outcome outcome = outcome_of_ranks(group, body);
  if (outcome.first != nullptr) std::rethrow_exception(outcome.first);
}

}  // namespace weft::comm
