#include "weft/passes/ranks/overlap_all_reduces.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "weft/graph/accumulation.h"
#include "weft/graph/collective.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

constexpr double kLatencyShare = 0.05;    // of a bucket's time, at which it is large enough
constexpr int64_t kSmallBytes = 1 << 20;  // never too large
constexpr double kSlackShare = 0.02;      // of a step: ranks are not exactly as far as each other

/// An all-reduce of the graph, on the time axis of the nodes that run before the updates.
struct Request {
  NodeId node;
  int64_t bytes = 0;
  size_t ready = 0;              // may start before the node at this place
  size_t needed = 0;             // and is waited for before the node at this one
  bool only_for_states = false;  // nothing but states of the next run comes of it,
  size_t read_next = 0;          // which the node at this place reads first
};

struct Bucket {
  std::vector<NodeId> nodes;
  size_t start = 0, wait = 0;  // before the nodes at these places
  bool is_deferred = false;
  size_t read_next = 0;
  int64_t priority = 0;
};

class Overlap {
 public:
  Overlap(const Graph& graph, const PassContext& context)
      : graph_(graph), costs_(context.ranks), is_late_(find_late_nodes(graph)), users_(find_users(graph)) {
    for (size_t index = 0; index < graph.nodes().size(); ++index) {
      const Node& node = graph.nodes()[index];
      const NodeId producer = graph.value(node.inputs.empty() ? node.outputs[0] : node.inputs[0]).producer;
      const bool follows_another = producer.valid() && index_of(producer) < index && is_split_[index_of(producer)];
      is_split_.push_back(is_all_reduce(node) && !is_late_[index] && !follows_another);
    }
    for (size_t index = 0; index < graph.nodes().size(); ++index)
      if (!is_late_[index] && !is_split_[index]) order_.push_back(index);
    first_late_ = order_.size();
    for (size_t index = 0; index < graph.nodes().size(); ++index)
      if (is_late_[index]) order_.push_back(index);
    place_.assign(graph.nodes().size(), 0);
    for (size_t place = 0; place < order_.size(); ++place) place_[order_[place]] = place;
    begins_.push_back(0);
    for (const size_t index : order_)
      begins_.push_back(begins_.back() + (is_late_[index] ? 0 : context.seconds(signature_of(graph, node_at(index)))));
  }

  Graph run() {
    Requests requests;
    const std::vector<bool> is_completing = find_completing(graph_);
    for (size_t index = 0; index < graph_.nodes().size(); ++index)
      if (const Node& node = graph_.nodes()[index]; is_split_[index])
        requests[{graph_.type(node.inputs[0]).dtype, node.attributes.text("reduction"), is_completing[index]}]
            .push_back(request_of(index));
    std::vector<Bucket> buckets;
    const bool defers = pays_to_defer(requests);
    for (auto& [kind, list] : requests)
      for (Bucket& bucket : choose_buckets(std::move(list), defers)) buckets.push_back(std::move(bucket));
    std::stable_sort(buckets.begin(), buckets.end(),
                     [](const Bucket& a, const Bucket& b) { return a.start < b.start; });
    if (defers) set_priorities(buckets);
    return rebuild(buckets);
  }

 private:
  /// What may go together is of one kind: type, reduction, and whether it waits for sums over several runs.
  using Requests = std::map<std::tuple<DType, std::string, bool>, std::vector<Request>>;

  Request request_of(size_t index) const {
    const Node& node = graph_.nodes()[index];
    const NodeId producer = graph_.value(node.inputs[0]).producer;
    Request request{node_at(index), graph_.type(node.inputs[0]).bytes(),
                    producer.valid() ? place_[index_of(producer)] + 1 : 0, first_late_};
    for (const NodeId reader : users_[index_of(node.outputs[0])])
      request.needed = std::min(request.needed, place_[index_of(reader)]);
    look_behind(index, request);
    return request;
  }

  /// What comes of the result.
  void look_behind(size_t index, Request& request) const {
    std::vector<bool> follows(graph_.nodes().size(), false);
    std::vector<bool> is_of_it(graph_.values().size(), false);
    follows[index] = true;
    request.only_for_states = true;
    for (size_t later = index; later < graph_.nodes().size(); ++later) {
      const Node& node = graph_.nodes()[later];
      if (!follows[later]) continue;
      if (later != index && is_collective(node)) request.only_for_states = false;
      for (const ValueId output : node.outputs) {
        is_of_it[index_of(output)] = true;
        for (const NodeId reader : users_[index_of(output)]) follows[index_of(reader)] = true;
      }
    }
    for (const GraphOutput& output : graph_.outputs())
      if (is_of_it[index_of(output.value)]) request.only_for_states = false;
    request.read_next = first_late_;
    for (const StateUpdate& update : graph_.updates()) {
      if (!is_of_it[index_of(update.value)]) continue;
      for (const NodeId reader : users_[index_of(graph_.find_input(update.state)->value)])
        request.read_next = std::min(request.read_next, place_[index_of(reader)]);
    }
  }

  /// Whether the rank would have to wait for gradients after the backward part.
  bool pays_to_defer(const Requests& requests) const {
    if (!costs_.may_defer) return false;
    double arrival = 0;
    std::vector<Request> all;
    for (const auto& [kind, list] : requests) all.insert(all.end(), list.begin(), list.end());
    std::stable_sort(all.begin(), all.end(), [](const Request& a, const Request& b) { return a.ready < b.ready; });
    for (const Request& request : all)
      arrival =
          std::max(arrival, begins_[request.ready]) + static_cast<double>(request.bytes) / costs_.bytes_per_second;
    return arrival > (1 + kSlackShare) * begins_.back();
  }

  /// What the next run reads first goes first, but nothing before what this one waits for.
  static void set_priorities(std::vector<Bucket>& buckets) {
    std::vector<Bucket*> deferred;
    for (Bucket& bucket : buckets)
      if (bucket.is_deferred) deferred.push_back(&bucket);
    std::stable_sort(deferred.begin(), deferred.end(),
                     [](const Bucket* a, const Bucket* b) { return a->read_next < b->read_next; });
    for (size_t index = 0; index < deferred.size(); ++index)
      deferred[index]->priority = static_cast<int64_t>(index) + 1;
  }

  /// Requests that go together: neighbours in time.
  struct Group {
    size_t first = 0, end = 0;  // of the requests
    int64_t bytes = 0;
    size_t ready = 0, needed = 0;
    bool only_for_states = false;
    size_t read_next = 0;
  };

  /// When each of them has arrived, one after the other.
  std::vector<double> arrivals(const std::vector<Group>& groups) const {
    std::vector<double> all;
    double end = 0;
    for (const Group& group : groups)
      all.push_back(end = std::max(end, begins_[group.ready]) + predicted_seconds(costs_, group.bytes));
    return all;
  }

  /// When the last one has arrived, and what collectives cost the rank itself.
  double cost(const std::vector<Group>& groups) const {
    return arrivals(groups).back() + static_cast<double>(groups.size()) * costs_.latency_seconds;
  }

  /// Merges neighbours as long as that makes nothing later on the whole.
  std::vector<Group> choose_groups(const std::vector<Request>& requests) const {
    const bool is_fixed = costs_.bucket_bytes > 0;
    const int64_t enough_bytes =
        is_fixed ? costs_.bucket_bytes
                 : std::max(kSmallBytes,
                            static_cast<int64_t>(costs_.latency_seconds / kLatencyShare * costs_.bytes_per_second));
    std::vector<Group> groups;
    for (size_t index = 0; index < requests.size(); ++index)
      groups.push_back({index, index + 1, requests[index].bytes, requests[index].ready, requests[index].needed,
                        requests[index].only_for_states, requests[index].read_next});
    double least = groups.empty() ? 0 : cost(groups);
    for (size_t index = 0; index + 1 < groups.size();) {
      const Group &one = groups[index], &next = groups[index + 1];
      const Group both{one.first,
                       next.end,
                       one.bytes + next.bytes,
                       next.ready,
                       std::min(one.needed, next.needed),
                       one.only_for_states,
                       std::min(one.read_next, next.read_next)};
      std::vector<Group> merged = groups;
      merged[index] = both;
      merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(index) + 1);
      const bool fits = one.only_for_states == next.only_for_states && both.bytes <= enough_bytes &&
                        both.needed >= both.ready &&
                        both.end - both.first <= static_cast<size_t>(kMostTensorsInCollective);
      const double costs = fits && !is_fixed ? cost(merged) : 0;
      if (!fits || costs > least) {
        ++index;
        continue;
      }
      groups = std::move(merged);
      least = costs;
    }
    return groups;
  }

  /// Of requests of one kind.
  std::vector<Bucket> choose_buckets(std::vector<Request> requests, bool defers) const {
    std::stable_sort(requests.begin(), requests.end(),
                     [](const Request& a, const Request& b) { return a.ready < b.ready; });
    const std::vector<Group> groups = choose_groups(requests);
    const std::vector<double> arrives = arrivals(groups);
    std::vector<Bucket> buckets;
    for (size_t index = 0; index < groups.size(); ++index) {
      const Group& group = groups[index];
      Bucket bucket{.nodes = {}, .start = group.ready};
      for (size_t request = group.first; request < group.end; ++request) bucket.nodes.push_back(requests[request].node);
      const double there = arrives[index] + costs_.latency_seconds + kSlackShare * begins_.back();
      const auto place = std::lower_bound(begins_.begin(), begins_.end(), there) - begins_.begin();
      bucket.is_deferred = defers && group.only_for_states;
      bucket.read_next = group.read_next;
      bucket.wait =
          bucket.is_deferred ? group.needed : std::clamp(static_cast<size_t>(place), group.ready, group.needed);
      buckets.push_back(std::move(bucket));
    }
    return buckets;
  }

  Graph rebuild(const std::vector<Bucket>& buckets) const {
    Rewriter rewriter(graph_);
    std::vector<std::vector<ValueId>> pending(buckets.size());
    for (size_t place = 0; place <= order_.size(); ++place) {
      // What can begin does so before anything is waited for.
      for (size_t index = 0; index < buckets.size(); ++index)
        if (buckets[index].start == place) pending[index] = start(rewriter, buckets[index], index);
      for (size_t index = 0; index < buckets.size(); ++index)
        if (buckets[index].wait == place) wait(rewriter, buckets[index], pending[index]);
      if (place < order_.size()) rewriter.copy(node_at(order_[place]));
    }
    return rewriter.finish();
  }

  Attributes start_attributes(const Bucket& bucket, int64_t number) const {
    const std::string &first = graph_.node_name(bucket.nodes.front()), &last = graph_.node_name(bucket.nodes.back());
    const std::string tensors =
        bucket.nodes.size() == 1 ? first : fmt::format("{} to {}, {} tensors", first, last, bucket.nodes.size());
    return {{"number", number},
            {"tensors", tensors},
            {"reduction", graph_.node(bucket.nodes.front()).attributes.text("reduction")},
            {kPriority, bucket.priority}};
  }

  std::vector<ValueId> start(Rewriter& rewriter, const Bucket& bucket, size_t number) const {
    std::vector<ValueId> operands;
    for (const NodeId node : bucket.nodes) operands.push_back(rewriter.map(graph_.node(node).inputs[0]));
    const std::vector<ValueId> pending =
        rewriter.result().add_node(kAllReduceStart, operands, start_attributes(bucket, static_cast<int64_t>(number)),
                                   fmt::format("{}.start", graph_.node_name(bucket.nodes.front())));
    for (size_t index = 0; index < pending.size(); ++index)
      rewriter.result().set_layout(pending[index], graph_.type(graph_.node(bucket.nodes[index]).inputs[0]).layout);
    return pending;
  }

  void wait(Rewriter& rewriter, const Bucket& bucket, const std::vector<ValueId>& pending) const {
    Graph& result = rewriter.result();
    const NodeId producer = result.value(pending[0]).producer;
    const Attributes& begun = result.node(producer).attributes;
    const Attributes attributes{{"number", begun.integer("number")},
                                {"tensors", begun.text("tensors")},
                                {"reduction", begun.text("reduction")},
                                {kDeferred, bucket.is_deferred}};
    const std::vector<ValueId> there =
        result.add_node(kAllReduceWait, pending, attributes, graph_.node_name(bucket.nodes.front()));
    for (size_t index = 0; index < there.size(); ++index) {
      const ValueId source = graph_.node(bucket.nodes[index]).outputs[0];
      result.set_layout(there[index], graph_.type(source).layout);
      result.rename(there[index], graph_.value(source).name);
      rewriter.replace(source, there[index]);
    }
  }

  const Graph& graph_;
  const Ranks& costs_;
  const std::vector<bool> is_late_;
  const std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_split_;  // per node: an all-reduce that becomes two; one of another's result stays as it is
  std::vector<size_t> order_;   // the other nodes, updates and what depends on them last
  size_t first_late_ = 0;       // place of the first of those
  std::vector<size_t> place_;   // per node: where it stands there
  std::vector<double> begins_;  // per place: the predicted time; one more for the end
};

}  // namespace

double predicted_seconds(const Ranks& ranks, int64_t bytes) {
  return ranks.latency_seconds + static_cast<double>(bytes) / ranks.bytes_per_second;
}

Graph overlap_all_reduces(const Graph& graph, const PassContext& context) {
  if (context.ranks.count <= 1) return graph;
  return Overlap(graph, context).run();
}

}  // namespace weft::passes
