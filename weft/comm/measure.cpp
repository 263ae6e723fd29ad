#include "weft/comm/measure.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <vector>

#include "weft/comm/collectives.h"
#include "weft/comm/exchange.h"
#include "weft/comm/native_all_reduce.h"
#include "weft/comm/sum.h"
#include "weft/comm/tags.h"
#include "weft/tensor/tensor.h"

namespace weft::comm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The least of some rounds: others may be using the machine.
double least_seconds(int rounds, const std::function<void()>& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) least = std::min(least, seconds_of(work));
  return least;
}

/// There and back: `bytes` to the peer and one byte to here. The other side calls it with is_first false.
void ping_pong(Communicator& communicator, int peer, bool is_first, std::span<std::byte> bytes) {
  const Purpose purpose{"measure a link", {}, {}};
  std::byte answer{};
  const auto wait = [&](Ticket ticket) {  // without sleeping: some links take less time
    for (Patience patience(communicator, {}, purpose); !communicator.test(ticket);) patience.check(peer);
  };
  if (is_first) {
    wait(communicator.send(peer, kExchangeTag, bytes));
    wait(communicator.receive(peer, kExchangeTag, std::span(&answer, 1)));
  } else {
    wait(communicator.receive(peer, kExchangeTag, bytes));
    wait(communicator.send(peer, kExchangeTag, std::span(&answer, 1)));
  }
}

/// Many small messages one after the other, and one back.
void stream(Communicator& communicator, int peer, bool is_first, int count) {
  const Purpose purpose{"measure a link", {}, {}};
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  std::vector<Ticket> tickets;
  for (std::byte& byte : bytes)
    tickets.push_back(is_first ? communicator.send(peer, kExchangeTag, std::span(&byte, 1))
                               : communicator.receive(peer, kExchangeTag, std::span(&byte, 1)));
  for (const Ticket ticket : tickets)
    for (Patience patience(communicator, {}, purpose); !communicator.test(ticket);) patience.check(peer);
  std::byte answer{};
  const Ticket ticket = is_first ? communicator.receive(peer, kExchangeTag, std::span(&answer, 1))
                                 : communicator.send(peer, kExchangeTag, std::span(&answer, 1));
  for (Patience patience(communicator, {}, purpose); !communicator.test(ticket);) patience.check(peer);
}

/// Between two ranks, of which `first` measures. The other one's result is 0.
LinkCosts measure_link(Communicator& communicator, int first, int second) {
  LinkCosts link{.latency_seconds = 0, .bytes_per_second = 0, .message_seconds = 0};
  const int rank = communicator.rank();
  if (rank != first && rank != second) return link;
  const int peer = rank == first ? second : first;
  std::vector<std::byte> buffer(1);
  const auto round_trip = [&] { ping_pong(communicator, peer, rank == first, buffer); };
  least_seconds(3, round_trip);
  const double small = least_seconds(50, round_trip);
  // As large as takes about a tenth of a second, so that slow links are measured in bearable time. Both sides have to
  // know, so the first tells.
  buffer.resize(64 << 10);
  double bytes = static_cast<double>(buffer.size());
  const double trial = least_seconds(3, round_trip);
  bytes = std::clamp(0.05 * bytes / std::max(trial, 1e-9), 64e3, 32e6);
  std::byte* const data = reinterpret_cast<std::byte*>(&bytes);
  if (rank == first)
    await(communicator, communicator.send(peer, kExchangeTag, {data, sizeof bytes}), peer, {},
          {"measure a link", {}, {}});
  else
    await(communicator, communicator.receive(peer, kExchangeTag, {data, sizeof bytes}), peer, {},
          {"measure a link", {}, {}});
  buffer.resize(static_cast<size_t>(bytes));
  const double large = least_seconds(kRounds, round_trip);
  constexpr int kMany = 100;
  const double many = least_seconds(kRounds, [&] { stream(communicator, peer, rank == first, kMany); });
  if (rank == first)
    link = {.latency_seconds = small / 2,
            .bytes_per_second = static_cast<double>(buffer.size()) / std::max(large - small, 1e-9),
            .message_seconds = std::max(many - small, 1e-9) / kMany};
  return link;
}

/// All ranks at once, as in a step: each reads two arrays that are larger than caches and writes both.
double measure_shared_memory(Communicator& communicator, int ranks_on_host) {
  constexpr int64_t kElements = 8 << 20;
  const auto a = allocate_aligned(4 * kElements), b = allocate_aligned(4 * kElements);
  void* const targets[] = {a.get(), b.get()};
  const void* const sources[] = {a.get(), b.get()};
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    barrier(communicator, "measure memory");
    least = std::min(least, seconds_of([&] { sum_to_all(DType::f32, sources, targets, 0, kElements, 1.0f); }));
  }
  // Each of n ranks reads and writes its share, a 1/n-th, of n operands: as much as one operand here.
  const double own = 2.0 * 4 * kElements / least;
  return ranks_on_host > 1 ? own : own / 2;
}

double measure_sums() {
  constexpr int64_t kElements = 64 << 10;
  std::vector<float> from(kElements, 1.0f), to(kElements, 0.0f);
  const double seconds = least_seconds(50, [&] { add_to_f32(DType::f32, from.data(), to.data(), kElements); });
  return 4 * kElements / seconds;
}

/// Median of some runs, of the rank that takes the longest. Each after one that is not counted: what shapes a link may
/// let a burst through at once.
double steady_seconds(Communicator& communicator, int count, const std::function<void()>& all_reduce) {
  std::vector<double> rounds;
  for (int round = 0; round < count; ++round) {
    all_reduce();
    barrier(communicator, "measure all-reduce");
    rounds.push_back(seconds_of(all_reduce));
  }
  std::sort(rounds.begin(), rounds.end());
  double seconds = rounds[rounds.size() / 2];
  all_reduce_max(communicator, std::span(&seconds, 1), "measured all-reduce");
  return seconds;
}

/// The communicator's own all-reduce beside ours, where each rank is a host of its own; up to the size that takes long.
NativeCosts measure_native(Communicator& communicator, size_t hosts, const ClusterCosts& links) {
  constexpr double kLongSeconds = 20e-3;
  constexpr int64_t kShortBytes = 16 << 10;
  NativeCosts costs;
  NativeAllReduce* const native = find_native_all_reduce(communicator);
  if (native == nullptr || hosts < 2 || hosts != communicator.members().size()) return costs;
  // What was measured is of this rank; all have to choose the same.
  CollectivesOptions options{.costs = links};
  broadcast(communicator, 0, std::as_writable_bytes(std::span(&options.costs, 1)), "measured links");
  Collectives collectives(communicator, options);
  int64_t bytes = NativeCosts::kSmallestBytes;
  for (size_t size = 0; size < costs.seconds.size(); ++size, bytes *= NativeCosts::kStep) {
    std::vector<float> values(static_cast<size_t>(bytes) / sizeof(float), 1.0f);
    const CollectiveId id = collectives.prepare({.name = "probe", .elements = {std::ssize(values)}});
    void* const tensor = values.data();
    const int count = bytes <= kShortBytes ? 5 * kRounds : kRounds;
    costs.own_seconds[size] =
        steady_seconds(communicator, count, [&] { collectives.reduce(id, std::span(&tensor, 1)); });
    costs.seconds[size] = steady_seconds(communicator, count, [&] {
      const Ticket ticket = native->all_reduce(values);
      const Purpose purpose{"measure all-reduce", {}, {}};
      for (Patience patience(communicator, {}, purpose); !communicator.test(ticket);) patience.check(-1);
    });
    if (costs.seconds[size] > kLongSeconds) break;
  }
  return costs;
}

}  // namespace

ClusterCosts measure_cluster(Communicator& communicator) {
  ClusterCosts costs;
  const auto& members = communicator.members();
  const Member& me = members[static_cast<size_t>(communicator.rank())];
  int ranks_on_host = 0, second_of_host = -1;
  std::vector<int> first_of_hosts;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const Member& member = members[static_cast<size_t>(rank)];
    ranks_on_host += member.host_index == me.host_index ? 1 : 0;
    if (member.local_rank == 0) first_of_hosts.push_back(rank);
    if (member.host_index == 0 && member.local_rank == 1) second_of_host = rank;
  }
  // The slowest of the links from the first host: a schedule waits for its slowest.
  LinkCosts slowest{
      .latency_seconds = 0, .bytes_per_second = std::numeric_limits<double>::infinity(), .message_seconds = 0};
  for (size_t host = 1; host < first_of_hosts.size(); ++host) {
    const LinkCosts link = measure_link(communicator, 0, first_of_hosts[host]);
    slowest.latency_seconds = std::max(slowest.latency_seconds, link.latency_seconds);
    slowest.message_seconds = std::max(slowest.message_seconds, link.message_seconds);
    slowest.bytes_per_second = std::min(slowest.bytes_per_second, link.bytes_per_second);
    barrier(communicator, "measure links");
  }
  if (first_of_hosts.size() > 1) costs.between_hosts = slowest;
  if (second_of_host > 0) costs.in_host = measure_link(communicator, 0, second_of_host);
  barrier(communicator, "measure links");
  double memory[] = {measure_shared_memory(communicator, ranks_on_host), measure_sums()};
  all_reduce_min(communicator, memory, "measured memory");
  costs.shared_bytes_per_second = memory[0];
  costs.summed_bytes_per_second = memory[1];
  costs.native = measure_native(communicator, first_of_hosts.size(), costs);
  broadcast(communicator, 0, std::as_writable_bytes(std::span(&costs, 1)), "measured links");
  return costs;
}

}  // namespace weft::comm
