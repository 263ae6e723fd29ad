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
Graph graph_of(const OpRegistry& ops, const std::string& op, int rank, int ranks, int64_t bytes) {
  Graph graph(ops, op);
  const TensorType type{DType::f32, Shape({bytes / 4}), {}};
  const bool receives = op == kReceive;
  Attributes attributes;
  if (op == kSend || receives) {
    attributes.set("peer", int64_t{rank ^ 1});
    attributes.set("tag", int64_t{0});
  } else if (op == kBroadcast || op == kReduceToRoot) {
    attributes.set("root", int64_t{0});
  } else if (op == kAllReduce || op == kReduceScatter) {
    attributes.set("reduction", std::string("sum"));
  }
  if (op == kAllGather || op == kReduceScatter || op == kAllToAll) attributes.set("ranks", int64_t{ranks});
  if (receives) {
    attributes.set("shape", type.shape.dims());
    attributes.set("dtype", std::string(name_of(type.dtype)));
    graph.add_output("y", graph.add(op, {}, attributes, "exchange"));
    return graph;
  }
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
    // Of two that exchange a message one sends.
    const std::string own_op = op == kSend && ranks_.rank() % 2 == 1 ? kReceive : op;
    const Graph graph = graph_of(ops_, own_op, ranks_.rank(), ranks_.size(), bytes);
    std::string why_not;
    const std::unique_ptr<Kernel> kernel =
        table_.candidates(own_op).front().make(signature_of(graph, NodeId{0}), {options_.threads}, why_not);
    check(kernel != nullptr, "a kernel of each exchange");
    check(kernel->workspace_bytes() <= largest_, "room for what travels");
    // Plans let all-reduces and messages be where their operands are; gathers read weights, which lie elsewhere.
    const bool is_in_place = op == kAllReduce || op == kSend;
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
  const int64_t most = options.cores / std::max(1, options.threads);
  for (int ranks = 2; ranks <= most; ranks *= 2) {
    // Each of them has a result, a workspace and an operand.
    const int64_t affordable = available_memory_bytes() / 4 / ranks / 3;
    const int64_t largest = std::max(kSmallestBytes, std::min(options.largest_bytes, affordable)) / 4096 * 4096;
    comm::run_ranks(std::vector<std::string>(static_cast<size_t>(ranks), "here"), [&](comm::Communicator&
                                                                                          communicator) {
      Rank rank(communicator, ops, options, largest);
      for (const char* const op : {kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kReduceToRoot, kSend})
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
