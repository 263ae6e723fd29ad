#include "weft/comm/measure/measure_links.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weft/comm/exchange.h"
#include "weft/comm/links/grouping.h"
#include "weft/comm/measure/timed.h"
#include "weft/comm/tags.h"

namespace weft::comm {

namespace {

using HostPairs = std::vector<std::pair<int, int>>;

constexpr double kPairsSeconds = 3, kUplinksSeconds = 2;            // for all pairs, for all groups
constexpr double kLongestSeconds = 50e-3, kShortestSeconds = 3e-3;  // of a large message
constexpr double kSmallestBytes = 64e3, kLargestBytes = 32e6;
constexpr double kMessagesPerPair = 12;  // large ones, in both directions, with those that find how large
constexpr int kUplinkRounds = 3;
constexpr double kUplinkFactor = 1.5;  // by which it has to be less than what the group's hosts can send

const Purpose kPurpose{"measure a link", {}, {}};

/// How long a link is measured.
struct Effort {
  double large_seconds = kLongestSeconds;
  int large_rounds = 5;

  static Effort of_rounds(int rounds) {
    return {std::clamp(kPairsSeconds / (rounds * kMessagesPerPair), kShortestSeconds, kLongestSeconds),
            rounds > 15 ? 3 : 5};
  }
};

/// One rank's end of a link to a peer; the other end does the same with is_first false.
class End {
 public:
  End(Communicator& communicator, int peer, bool is_first)
      : communicator_(communicator), peer_(peer), is_first_(is_first) {}

  /// Seconds of a message of one byte there and back.
  double small() const {
    std::vector<std::byte> byte(1);
    least_seconds(3, [&] { there_and_back(byte); });
    return least_seconds(50, [&] { there_and_back(byte); });
  }

  /// Per message of many small ones.
  double per_message(double small_seconds) const {
    constexpr int kMany = 100, kLeast = 5;
    const double many = least_seconds(kLeast, [&] { stream(kMany); });
    return std::max(many - small_seconds, 1e-9) / kMany;
  }

  /// Messages become larger until one takes long enough, so that slow links are measured in bearable time.
  double bytes_per_second(double small_seconds, const Effort& effort) const {
    double bytes = kSmallestBytes, seconds = 0;
    std::vector<std::byte> buffer;
    const auto run = [&] { there_and_back(buffer); };
    for (bool goes_on = true; goes_on;) {
      buffer.resize(static_cast<size_t>(bytes));
      seconds = seconds_of(run);
      double next = 0;
      if (seconds < effort.large_seconds / 2 && bytes < kLargestBytes)
        next = std::min(kLargestBytes, bytes * std::clamp(effort.large_seconds / std::max(seconds, 1e-9), 1.5, 8.0));
      tell(next);
      goes_on = next > 0;
      if (goes_on) bytes = next;
    }
    seconds = std::min(seconds, least_seconds(effort.large_rounds, run));
    return bytes / std::max(seconds - small_seconds, 1e-9);
  }

  /// The bytes to the peer and one byte to here.
  void there_and_back(std::span<std::byte> bytes) const {
    std::byte answer{};
    if (is_first_) {
      wait(communicator_.send(peer_, kExchangeTag, bytes));
      wait(communicator_.receive(peer_, kExchangeTag, std::span(&answer, 1)));
    } else {
      wait(communicator_.receive(peer_, kExchangeTag, bytes));
      wait(communicator_.send(peer_, kExchangeTag, std::span(&answer, 1)));
    }
  }

 private:
  /// Without sleeping: some links take less time.
  void wait(Ticket ticket) const {
    for (Patience patience(communicator_, {}, kPurpose); !communicator_.test(ticket);) patience.check(peer_);
  }
  /// The first end's number, to the other.
  void tell(double& number) const {
    auto* const data = reinterpret_cast<std::byte*>(&number);
    wait(is_first_ ? communicator_.send(peer_, kExchangeTag, {data, sizeof number})
                   : communicator_.receive(peer_, kExchangeTag, {data, sizeof number}));
  }
  /// Many small messages one after the other, and one back.
  void stream(int count) const {
    std::vector<std::byte> bytes(static_cast<size_t>(count));
    std::vector<Ticket> tickets;
    for (std::byte& byte : bytes)
      tickets.push_back(is_first_ ? communicator_.send(peer_, kExchangeTag, std::span(&byte, 1))
                                  : communicator_.receive(peer_, kExchangeTag, std::span(&byte, 1)));
    for (const Ticket ticket : tickets) wait(ticket);
    std::byte answer{};
    wait(is_first_ ? communicator_.receive(peer_, kExchangeTag, std::span(&answer, 1))
                   : communicator_.send(peer_, kExchangeTag, std::span(&answer, 1)));
  }

  Communicator& communicator_;
  const int peer_;
  const bool is_first_;
};

/// Measures pairs of hosts, `ranks[host]` of each, and tells all ranks.
class Prober {
 public:
  Prober(Communicator& communicator, const std::vector<int>& ranks)
      : communicator_(communicator), ranks_(ranks), own_(host_of(communicator.rank())) {}

  /// Pairs of a round are measured at once. Of the two directions the slower one counts.
  void measure(const std::vector<HostPairs>& rounds, const Effort& effort, PairTable& table) const {
    const int hosts = table.hosts();
    const auto count = static_cast<size_t>(hosts * hosts);
    std::vector<double> found(3 * count, 0);  // rates by direction, latencies, messages
    for (const HostPairs& round : rounds) {
      barrier(communicator_, "measure links");
      for (const auto& [a, b] : round) {
        if (own_ != a && own_ != b) continue;
        const int peer = own_ == a ? b : a;
        const End forth(communicator_, rank_of(peer), own_ == a), back(communicator_, rank_of(peer), own_ == b);
        const double small = forth.small(), message = forth.per_message(small);
        const double rate = forth.bytes_per_second(small, effort), other = back.bytes_per_second(small, effort);
        const auto index = static_cast<size_t>(own_ * hosts + peer);
        found[index] = own_ == a ? rate : other;
        if (own_ != a) continue;
        found[count + index] = small / 2;
        found[2 * count + index] = message;
      }
    }
    all_reduce_max(communicator_, found, "measured links");
    for (const HostPairs& round : rounds)
      for (const auto& [a, b] : round) {
        const auto there = static_cast<size_t>(a * hosts + b), back = static_cast<size_t>(b * hosts + a);
        table.set(a, b,
                  {.latency_seconds = found[count + there],
                   .bytes_per_second = std::min(found[there], found[back]),
                   .message_seconds = found[2 * count + there]});
      }
  }

  /// What all flows carry together, each from its first host to its second, in the slower of the two directions.
  double measure_together(const HostPairs& flows, double bytes) const {
    double slowest = kUnlimited;
    std::vector<std::byte> buffer(static_cast<size_t>(bytes));
    for (const bool forth : {true, false}) {
      double least = kUnlimited;
      for (int round = 0; round < kUplinkRounds; ++round) {
        barrier(communicator_, "measure uplinks");
        double seconds = 0;
        for (const auto& [a, b] : flows) {
          if (own_ != a && own_ != b) continue;
          const End end(communicator_, rank_of(own_ == a ? b : a), (own_ == a) == forth);
          seconds = seconds_of([&] { end.there_and_back(buffer); });
        }
        all_reduce_max(communicator_, std::span(&seconds, 1), "measured uplinks");
        least = std::min(least, seconds);
      }
      slowest = std::min(slowest, static_cast<double>(flows.size()) * bytes / std::max(least, 1e-9));
    }
    return slowest;
  }

 private:
  int rank_of(int host) const { return ranks_[static_cast<size_t>(host)]; }
  int host_of(int rank) const {
    const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
    return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
  }

  Communicator& communicator_;
  const std::vector<int>& ranks_;
  const int own_;  // host whose rank this is; -1: only waits for the others
};

HostPairs pairs_among(const std::vector<int>& hosts) {
  HostPairs pairs;
  for (size_t a = 0; a < hosts.size(); ++a)
    for (size_t b = a + 1; b < hosts.size(); ++b) pairs.emplace_back(hosts[a], hosts[b]);
  return pairs;
}

/// Each pair in a round of its own.
std::vector<HostPairs> one_by_one(const std::vector<Topology::Pair>& pairs) {
  std::vector<HostPairs> rounds;
  for (const Topology::Pair& pair : pairs) rounds.push_back({{pair.first, pair.second}});
  return rounds;
}

LinkCosts better(const LinkCosts& a, const LinkCosts& b) {
  return {.latency_seconds = std::min(a.latency_seconds, b.latency_seconds),
          .bytes_per_second = std::max(a.bytes_per_second, b.bytes_per_second),
          .message_seconds = std::min(a.message_seconds, b.message_seconds)};
}

/// What is unlike the others may have been disturbed: it is measured again, alone, and the better of both counts.
AlikeLinks summarize_again(const Prober& prober, PairTable& measured, const HostPairs& pairs) {
  const AlikeLinks first = summarize(measured, pairs);
  if (first.exceptions.empty() || first.exceptions.size() > static_cast<size_t>(2 * measured.hosts())) return first;
  PairTable again(measured.hosts());
  prober.measure(one_by_one(first.exceptions), Effort::of_rounds(static_cast<int>(first.exceptions.size())), again);
  for (const Topology::Pair& pair : first.exceptions)
    measured.set(pair.first, pair.second,
                 better(measured.at(pair.first, pair.second), again.at(pair.first, pair.second)));
  return summarize(measured, pairs);
}

/// Of each pair of groups the link between two of their hosts, with nothing else under way but other groups' pairs; the
/// better of two.
PairTable measure_between(const Prober& prober, const PairTable& measured,
                          const std::vector<std::vector<int>>& groups) {
  const int count = static_cast<int>(groups.size());
  PairTable between(count);
  const std::vector<HostPairs> meetings = tournament(count);
  const Effort effort = Effort::of_rounds(2 * static_cast<int>(meetings.size()));
  for (const size_t member : {size_t{0}, size_t{1}}) {
    const auto host = [&](int group) {
      const std::vector<int>& hosts = groups[static_cast<size_t>(group)];
      return hosts[member % hosts.size()];
    };
    std::vector<HostPairs> rounds;
    for (const HostPairs& meeting : meetings) {
      rounds.emplace_back();
      for (const auto& [a, b] : meeting) rounds.back().emplace_back(std::minmax(host(a), host(b)));
    }
    PairTable table = measured;
    prober.measure(rounds, effort, table);
    for (const HostPairs& meeting : meetings)
      for (const auto& [a, b] : meeting) {
        const LinkCosts& link = table.at(host(a), host(b));
        if (link.bytes_per_second > between.at(a, b).bytes_per_second) between.set(a, b, link);
      }
  }
  return between;
}

/// Each host of the group with one outside of its own, as many as there are, in turn of the other groups.
HostPairs flows_out_of(const std::vector<std::vector<int>>& groups, size_t group) {
  std::vector<int> outside;
  size_t most = 0;
  for (const auto& other : groups) most = std::max(most, other.size());
  for (size_t index = 0; index < most; ++index)
    for (size_t other = 0; other < groups.size(); ++other)
      if (other != group && index < groups[other].size()) outside.push_back(groups[other][index]);
  HostPairs flows;
  for (size_t index = 0; index < std::min(groups[group].size(), outside.size()); ++index)
    flows.emplace_back(groups[group][index], outside[index]);
  return flows;
}

}  // namespace

LinkCosts measure_link(Communicator& communicator, int first, int second) {
  const int rank = communicator.rank();
  if (rank != first && rank != second) return {0, 0, 0};
  const End end(communicator, rank == first ? second : first, rank == first);
  const double small = end.small(), rate = end.bytes_per_second(small, {}), message = end.per_message(small);
  if (rank != first) return {0, 0, 0};
  return {.latency_seconds = small / 2, .bytes_per_second = rate, .message_seconds = message};
}

void measure_links(Communicator& communicator, const std::vector<int>& ranks, ClusterCosts& costs) {
  const int hosts = static_cast<int>(ranks.size());
  const Prober prober(communicator, ranks);
  PairTable measured(hosts);
  const std::vector<HostPairs> rounds = tournament(hosts);
  prober.measure(rounds, Effort::of_rounds(static_cast<int>(rounds.size())), measured);
  std::vector<int> all(ranks.size());
  for (size_t host = 0; host < all.size(); ++host) all[host] = static_cast<int>(host);
  const auto as_one_group = [&] {
    AlikeLinks links = summarize_again(prober, measured, pairs_among(all));
    costs.between_hosts = links.costs;
    costs.topology = {.groups = {}, .pairs = std::move(links.exceptions), .hosts = {}};
  };
  const std::vector<std::vector<int>> groups = find_groups(measured);
  if (groups.size() == 1) return as_one_group();
  // What else the machines do may look like groups, but hardly twice like the same.
  PairTable again(hosts);
  prober.measure(rounds, Effort::of_rounds(static_cast<int>(rounds.size())), again);
  const bool is_the_same = find_groups(again) == groups;
  for (const auto& [a, b] : pairs_among(all)) measured.set(a, b, better(measured.at(a, b), again.at(a, b)));
  if (!is_the_same) return as_one_group();

  const PairTable between = measure_between(prober, measured, groups);
  std::vector<int> group_numbers(groups.size());
  for (size_t group = 0; group < groups.size(); ++group) group_numbers[group] = static_cast<int>(group);
  const AlikeLinks across = summarize(between, pairs_among(group_numbers));
  Topology topology;
  bool differ = false;
  const double seconds = std::clamp(kUplinksSeconds / (2 * kUplinkRounds * hosts), kShortestSeconds, kLongestSeconds);
  for (size_t index = 0; index < groups.size(); ++index) {
    Topology::Group group{.hosts = groups[index], .within = {}, .uplink_bytes_per_second = kUnlimited};
    const HostPairs flows = flows_out_of(groups, index);
    const double bytes = std::clamp(across.costs.bytes_per_second * seconds, kSmallestBytes, kLargestBytes);
    const double together = flows.size() > 1 ? prober.measure_together(flows, bytes) : kUnlimited;
    if (group.hosts.size() > 1) {
      AlikeLinks within = summarize_again(prober, measured, pairs_among(group.hosts));
      // Groups that are alike have the same.
      for (const Topology::Group& other : topology.groups)
        if (other.within && are_alike(*other.within, within.costs)) within.costs = *other.within;
      group.within = within.costs;
      topology.pairs.insert(topology.pairs.end(), within.exceptions.begin(), within.exceptions.end());
      const double own = within.costs.bytes_per_second * static_cast<double>(flows.size());
      if (together * kUplinkFactor < own) group.uplink_bytes_per_second = together;
      differ = differ || group.uplink_bytes_per_second != kUnlimited || !are_alike(*group.within, across.costs);
    }
    topology.groups.push_back(std::move(group));
  }
  if (!differ) return as_one_group();
  for (const Topology::Pair& pair : across.exceptions)
    for (const int a : groups[static_cast<size_t>(pair.first)])
      for (const int b : groups[static_cast<size_t>(pair.second)])
        topology.pairs.push_back({std::min(a, b), std::max(a, b), pair.costs});
  costs.between_hosts = across.costs;
  costs.topology = std::move(topology);
}

}  // namespace weft::comm
