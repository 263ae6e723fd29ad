#include "weft/comm/measure/measure.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "weft/comm/collectives.h"
#include "weft/comm/exchange.h"
#include "weft/comm/measure/measure_links.h"
#include "weft/comm/measure/timed.h"
#include "weft/comm/native_all_reduce.h"
#include "weft/comm/sum.h"
#include "weft/tensor/tensor.h"

namespace weft::comm {

namespace {

constexpr int kRounds = 5;

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
  Collectives collectives(communicator, {.costs = links});
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
  if (first_of_hosts.size() > 1) measure_links(communicator, first_of_hosts, costs);
  if (second_of_host > 0) costs.in_host = measure_link(communicator, 0, second_of_host);
  // The first rank measured it; all have to choose the same.
  broadcast(communicator, 0, std::as_writable_bytes(std::span(&costs.in_host, 1)), "measured links");
  double memory[] = {measure_shared_memory(communicator, ranks_on_host), measure_sums()};
  all_reduce_min(communicator, memory, "measured memory");
  costs.shared_bytes_per_second = memory[0];
  costs.summed_bytes_per_second = memory[1];
  costs.native = measure_native(communicator, first_of_hosts.size(), costs);
  return costs;
}

}  // namespace weft::comm
