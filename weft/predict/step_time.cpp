#include "weft/predict/step_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "weft/device/offload_timeline.h"
#include "weft/graph/accumulation.h"
#include "weft/graph/collective.h"
#include "weft/graph/kept.h"
#include "weft/graph/offloaded.h"
#include "weft/plan/deferral.h"

namespace weft::predict {

namespace {

const CollectiveOps* ops_of(const Node& node) {
  return is_message(node) ? find_ops(node, kMessages) : find_collective(node);
}

/// Bytes of one rank's operands; of what is received, which is no operand, of the result.
int64_t bytes_of(const Graph& graph, const Node& node) {
  int64_t bytes = 0;
  for (const ValueId value : node.inputs.empty() ? node.outputs : node.inputs) bytes += graph.type(value).bytes();
  return bytes;
}

/// One run of a compiled graph after the other, on a time axis that goes on.
class Runs {
 public:
  /// `is_scheduled`: a schedule says what the run waits for messages.
  Runs(const CompiledStep& step, bool is_update, bool runs_kept, bool is_scheduled, const NodeTimes& nodes,
       const ExchangeTimes& exchange)
      : step_(step),
        graph_(step.graph),
        exchange_(exchange),
        runs_kept_(runs_kept),
        is_scheduled_(is_scheduled),
        seconds_per_node_(nodes.seconds_per_node),
        parts_(parts_of(step.graph, is_update)),
        is_completing_(find_completing(step.graph)),
        order_(order_of_run(step.plan)) {
    const OffloadRates file;
    for (const PlannedNode& planned : step.plan.steps) {
      const Node& node = graph_.node(planned.node);
      if (ops_of(node) != nullptr || node.op->is_view) {
        estimates_.push_back({});
      } else if (is_store(node) || is_load(node)) {
        const auto bytes = static_cast<double>(graph_.type(node.inputs[0]).bytes());
        const double rate = is_store(node) ? file.into_cache : file.out_of_cache_per_thread * step.plan.threads;
        estimates_.push_back({bytes / rate, 0.3, CostSource::rated});
      } else {
        estimates_.push_back(nodes.of(signature_of(graph_, planned.node), planned.kernel));
      }
    }
  }

  /// Adds a run to the step. `completes`: sums over several batches. `times` is what the run counts for. With a
  /// `timeline`, spans are added to it.
  void run(bool completes, double times, StepTime& into, std::vector<Span>* timeline) {
    const double begin = now_;
    const bool was_complete = std::exchange(was_complete_, completes);
    for (const size_t index : order_) {
      const PlannedNode& planned = step_.plan.steps[index];
      const Node& node = graph_.node(planned.node);
      const auto number = static_cast<size_t>(planned.node.index);
      // What is deferred belongs to the run before (runtime/executor.h).
      const bool is_complete = index >= static_cast<size_t>(step_.plan.deferred_from) ? was_complete : completes;
      if (node.op->is_view || (is_kept(node) && !(runs_kept_ && completes)) || (is_completing_[number] && !is_complete))
        continue;
      if (const CollectiveOps* ops = ops_of(node)) {
        run_exchange(*ops, node, times, begin, into, timeline);
        continue;
      }
      const OpEstimate& estimate = estimates_[index];
      add(parts_[number], estimate.seconds, graph_.node_name(planned.node), times, begin, into, timeline);
      into.by_source[static_cast<size_t>(estimate.source)] += times * estimate.seconds;
      into.overhead_seconds += times * seconds_per_node_;
      now_ += seconds_per_node_;
      auto& [seconds, spread] = kinds_[{node.op->name, planned.kernel}];
      seconds += times * estimate.seconds;
      spread += times * estimate.seconds * estimate.spread;
    }
    const double waiting = step_.recompute.offload_waiting_seconds;  // for the disk
    into.seconds[static_cast<size_t>(Part::transfer)] += times * waiting;
    now_ += waiting;
    last_seconds_ = now_ - begin;
  }

  double link_seconds() const { return link_seconds_; }
  double last_seconds() const { return last_seconds_; }
  /// The squares of what kinds of nodes are off by. Nodes of one kind are off alike.
  double squared_error() const {
    double sum = 0;
    for (const auto& [kind, times] : kinds_) sum += times.second * times.second;
    return sum;
  }

 private:
  void add(Part part, double seconds, const std::string& name, double times, double begin, StepTime& into,
           std::vector<Span>* timeline) {
    into.seconds[static_cast<size_t>(part)] += times * seconds;
    if (timeline != nullptr && seconds > 0) timeline->push_back({name, part, false, now_ - begin, seconds});
    now_ += seconds;
  }

  void run_exchange(const CollectiveOps& ops, const Node& node, double times, double begin, StepTime& into,
                    std::vector<Span>* timeline) {
    const std::string& name = graph_.value(node.outputs.front()).name;
    if (is_collective_wait(node)) {
      const auto found = arrivals_.find({ops.whole, node.attributes.integer("number")});
      if (found == arrivals_.end()) return;  // deferred by a run that is not looked at
      add(Part::exchange, std::max(0.0, found->second - now_), name, times, begin, into, timeline);
      return;
    }
    const int64_t bytes = bytes_of(graph_, node);
    const std::string axis = is_message(node) ? kPipelineAxis : axis_of_exchange(node);
    // Without a schedule whoever receives waits as long as whoever sends.
    const char* const op = is_message(node) && !is_scheduled_ ? kSend : ops.whole;
    const double seconds = exchange_.seconds(axis, op, bytes);
    // Whoever sends counts a message.
    if (ops.whole != std::string_view(kReceive)) count(ops.whole, bytes, times, into.exchanged[axis]);
    // What stages wait for messages says their schedule (idle_seconds): alone it would look as if nobody waited.
    if (is_message(node) && is_scheduled_ && exchange_.hides) {
      link_seconds_ += times * seconds;
      if (is_collective_start(node)) arrivals_[{ops.whole, node.attributes.integer("number")}] = now_;
      return;
    }
    if (!is_collective_start(node) || !exchange_.hides) {
      add(Part::exchange, seconds, name, times, begin, into, timeline);
      if (is_collective_start(node)) arrivals_[{ops.whole, node.attributes.integer("number")}] = now_;
      return;
    }
    const double from = std::max(now_, link_is_free_);
    link_is_free_ = from + seconds;
    link_seconds_ += times * seconds;
    arrivals_[{ops.whole, node.attributes.integer("number")}] = link_is_free_;
    if (timeline != nullptr)
      timeline->push_back({node.attributes.text("tensors"), Part::exchange, true, from - begin, seconds});
  }

  static void count(std::string_view op, int64_t bytes, double times, ExchangedBytes& into) {
    const auto counted = static_cast<int64_t>(times * static_cast<double>(bytes));
    if (op == kAllGather)
      into.gathered += counted;
    else if (op == kReduceScatter)
      into.scattered += counted;
    else if (op == kAllToAll)
      into.dealt += counted;
    else if (op == kSend)
      into.sent += counted;
    else
      into.reduced += counted;
  }

  const CompiledStep& step_;
  const Graph& graph_;
  const ExchangeTimes& exchange_;
  const bool runs_kept_, is_scheduled_;
  const double seconds_per_node_;
  const std::vector<Part> parts_;
  const std::vector<bool> is_completing_;
  const std::vector<size_t> order_;
  std::vector<OpEstimate> estimates_;                                               // per planned step
  std::map<std::pair<std::string, int64_t>, double> arrivals_;                      // by collective
  std::map<std::pair<std::string, std::string>, std::pair<double, double>> kinds_;  // seconds, and off by
  double now_ = 0, link_is_free_ = 0, link_seconds_ = 0, last_seconds_ = 0;
  bool was_complete_ = false;
};

/// What a rank of a pipeline waits for the others: by its schedule, at the pace of these times, over these links.
double idle_seconds(const StepGraphs& graphs, const StepTime& time, const ExchangeTimes& exchange) {
  if (graphs.pipeline == nullptr) return 0;
  const step::PipelineOutlook& pipeline = *graphs.pipeline;
  const auto rank = static_cast<size_t>(pipeline.rank);
  const double busy = pipeline.forecast.seconds - pipeline.forecast.idle.at(rank);
  if (busy <= 0) return 0;
  const double pace = (time.of(Part::forward) + time.of(Part::backward)) / busy;
  passes::PipelineTimes times = pipeline.times;
  for (std::vector<double>* of : {&times.forward, &times.backward_inputs, &times.backward_weights})
    for (double& seconds : *of) seconds *= pace;
  times.link = exchange.seconds(kPipelineAxis, kSend, pipeline.message_bytes);
  return passes::simulate(pipeline.order, times).idle.at(rank);
}

}  // namespace

double StepTime::whole() const { return std::accumulate(seconds.begin(), seconds.end(), overhead_seconds); }

StepTime predict_step(const StepGraphs& graphs, const NodeTimes& nodes, const ExchangeTimes& exchange) {
  StepTime time;
  double squared = 0, link_seconds = 0;
  double end_of_batch = 0;  // on the timeline
  const auto add_graph = [&](const CompiledStep& step, bool is_update, bool runs_kept, int64_t batches, double times) {
    const size_t first = time.timeline.size();
    StepTime warm_up;  // leaves to the next run what is deferred
    Runs before(step, is_update, runs_kept, graphs.pipeline != nullptr, nodes, exchange);
    before.run(true, 0, warm_up, nullptr);
    const double link_before = before.link_seconds();
    if (batches > 1) before.run(false, times, time, nullptr);  // with what the last step has deferred
    if (batches > 2) before.run(false, times * static_cast<double>(batches - 2), time, nullptr);
    before.run(true, times, time, &time.timeline);
    squared += before.squared_error();
    link_seconds += before.link_seconds() - link_before;
    for (size_t span = first; span < time.timeline.size(); ++span) time.timeline[span].begin += end_of_batch;
    end_of_batch += before.last_seconds();
  };
  // Where an update is a graph of its own, the states are bound anew after it.
  add_graph(*graphs.batch, false, graphs.update != nullptr, graphs.batches, 1);
  if (graphs.update != nullptr) add_graph(*graphs.update, true, false, 1, 1);
  const double waited = time.of(Part::exchange);
  time.seconds[static_cast<size_t>(Part::exchange)] += idle_seconds(graphs, time, exchange);
  time.hidden_seconds = exchange.hides ? std::max(0.0, link_seconds - waited) : 0;
  if (graphs.averaging != nullptr && graphs.averaging_period > 0) {
    const double means = 1 / static_cast<double>(graphs.averaging_period);  // in a step
    const double whole = graphs.weight_averaging != nullptr ? means / static_cast<double>(graphs.states_every) : means;
    add_graph(*graphs.averaging, true, true, 1, whole);
    if (graphs.weight_averaging != nullptr) add_graph(*graphs.weight_averaging, true, true, 1, means - whole);
  }
  const double whole = time.whole();
  if (whole > 0)
    time.spread = std::sqrt(squared / (whole * whole) + nodes.common_spread * nodes.common_spread +
                            std::pow(exchange.spread * time.of(Part::exchange) / whole, 2));
  return time;
}

}  // namespace weft::predict
