#include "weft/predict/measure_exchanges.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/memory.h"
#include "weft/comm/collectives.h"
#include "weft/comm/exchange.h"
#include "weft/comm/local/local_group.h"
#include "weft/graph/collective.h"
#include "weft/graph/graph.h"
#include "weft/runtime/collective_kernels.h"
#include "weft/tensor/tensor.h"

namespace weft::predict {

namespace {

constexpr int64_t kSmallestBytes = 4096, kStep = 4;
constexpr int64_t kBesideBytes = 64 << 20;  // written between rounds, so that operands leave the caches
constexpr const char* kWhat = "measure exchanges";

/// A graph of the op alone, of which the rank's operand has so many bytes of f32.
Graph graph_of(const OpRegistry& ops, const std::string& op, int ranks, int64_t bytes) {
  Graph graph(ops, op);
  const TensorType type{DType::f32, Shape({bytes / 4}), {}};
  Attributes attributes;
  if (op == kBroadcast || op == kReduceToRoot) attributes.set("root", int64_t{0});
  if (op == kAllReduce || op == kReduceScatter) attributes.set("reduction", std::string("sum"));
  if (op == kAllGather || op == kReduceScatter) attributes.set("ranks", int64_t{ranks});
  const ValueId x = graph.add_input(InputKind::batch, "x", type);
  graph.add_output("y", graph.add(op, {x}, attributes, "exchange"));
  return graph;
}

/// Of one rank: what its kernels exchange lies in memory that the others see, as a step's does.
class Rank {
 public:
  Rank(comm::Communicator& ranks, const OpRegistry& ops, const MeasureExchangesOptions& options, int64_t largest)
      : ranks_(ranks),
        ops_(ops),
        options_(options),
        collectives_(std::make_shared<comm::Collectives>(ranks, comm::CollectivesOptions{.threads = options.threads})),
        shared_(collectives_->allocate(2 * largest)),
        own_(allocate_aligned(largest)),
        beside_(allocate_aligned(kBesideBytes)),
        largest_(largest) {
    add_collective_kernels(table_, collectives_);
  }

  /// Seconds of the rank that takes the longest: the median of the rounds after the first.
  double measure(const std::string& op, int64_t bytes) {
    const Graph graph = graph_of(ops_, op, ranks_.size(), bytes);
    std::string why_not;
    const std::unique_ptr<Kernel> kernel =
        table_.candidates(op).front().make(signature_of(graph, NodeId{0}), {options_.threads}, why_not);
    check(kernel != nullptr, "a kernel of each exchange");
    check(kernel->workspace_bytes() <= largest_, "room for what travels");
    // Plans let all-reduces be where their operands are; gathers read weights, which lie elsewhere; what is scattered
    // is copied first, unless a plan begins it early and lets it take its operand's place.
    const bool is_in_place = op == kAllReduce;
    std::byte* const operand = is_in_place ? shared_.get() : own_.get();
    const void* inputs[] = {operand};
    void* outputs[] = {shared_.get()};
    std::vector<double> rounds;
    for (int round = 0; round <= options_.rounds; ++round) {
      std::fill_n(reinterpret_cast<float*>(operand), bytes / 4, 1.0f);
      std::fill_n(reinterpret_cast<float*>(beside_.get()), kBesideBytes / 4, static_cast<float>(round));
      comm::barrier(ranks_, kWhat);
      const double begin = steady_seconds();
      kernel->run({inputs, outputs, shared_.get() + largest_});
      if (round > 0) rounds.push_back(steady_seconds() - begin);
    }
    comm::all_reduce_max(ranks_, rounds, kWhat);
    std::sort(rounds.begin(), rounds.end());
    return rounds[rounds.size() / 2];
  }

 private:
  comm::Communicator& ranks_;
  const OpRegistry& ops_;
  const MeasureExchangesOptions& options_;
  const std::shared_ptr<comm::Collectives> collectives_;
  const std::shared_ptr<std::byte> shared_;  // results, and behind them a workspace
  const decltype(allocate_aligned(0)) own_, beside_;
  const int64_t largest_;
  KernelTable table_;
};

}  // namespace

SharedExchanges measure_exchanges(const OpRegistry& ops, const MeasureExchangesOptions& options) {
  SharedExchanges measured;
  const double begin = steady_seconds();
  const int64_t most = options.cores / std::max(1, options.threads);
  for (int ranks = 2; ranks <= most; ranks *= 2) {
    // Twice as many ranks take about twice as long.
    const double so_far = steady_seconds() - begin;
    if (ranks > 2 && 3 * so_far > options.most_seconds) break;
    // Each of them has a result, a workspace, an operand and as much for messages, beside what it writes in between.
    const int64_t affordable = (available_memory_bytes() / 2 / ranks - kBesideBytes) / 4;
    const int64_t largest = std::min(options.largest_bytes, affordable) / kSmallestBytes * kSmallestBytes;
    if (largest < kSmallestBytes) break;
    const std::vector<std::string> hosts(static_cast<size_t>(ranks), "here");
    comm::run_ranks(hosts, [&](comm::Communicator& communicator) {
      Rank rank(communicator, ops, options, largest);
      for (const char* const op : {kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduceToRoot})
        for (int64_t whole = kSmallestBytes; whole <= largest; whole *= kStep) {
          const int64_t bytes = std::string_view(op) == kAllGather ? whole / ranks : whole;
          const double seconds = rank.measure(op, bytes);
          if (communicator.rank() == 0) measured.add({op, ranks, bytes}, seconds);
        }
    });
  }
  return measured;
}

}  // namespace weft::predict
