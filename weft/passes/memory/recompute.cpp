#include "weft/passes/memory/recompute.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/graph/collective.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/contents.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/recomputed.h"
#include "weft/graph/space_copies.h"
#include "weft/passes/memory/mark_in_place.h"
#include "weft/passes/memory/recompute_search.h"
#include "weft/passes/support/rebuild.h"

namespace weft::passes {

namespace {

constexpr int kAttempts = 8;         // at a target that meets the limit in the plan itself
constexpr int64_t kNearEnough = 50;  // a limit that is met within this part of it

/// A node as it runs again: itself, or something cheaper that gives the same bits.
struct Repetition {
  std::string op;
  std::vector<ValueId> inputs;
  Attributes attributes;
  std::vector<ValueId> outputs;  // of the original, for which the results stand
};

NodeSignature signature_of(const Graph& graph, const Repetition& again) {
  NodeSignature signature{&graph.registry().get(again.op), "", {}, {}, again.attributes};
  for (const ValueId input : again.inputs) signature.inputs.push_back(graph.type(input));
  for (const ValueId output : again.outputs) signature.outputs.push_back(graph.type(output));
  return signature;
}

/// The graph as buffers and steps, and back.
class RecomputeBuilder {
 public:
  RecomputeBuilder(const Graph& graph, const PassContext& context, const PlannedMemory& planned,
                   double offload_bytes_per_second)
      : graph_(graph),
        context_(context),
        offload_bytes_per_second_(offload_bytes_per_second),
        is_separate_(context.backend.memory_rules().is_separate),
        content_(find_contents(graph)),
        buffer_(graph.values().size(), -1) {
    std::unordered_map<std::string, int32_t> by_name;
    for (size_t index = 0; index < graph.nodes().size(); ++index)
      by_name.emplace(graph.node_name(node_at(index)), static_cast<int32_t>(index));
    for (const PlannedMemory::Step& step : planned.steps) {
      const auto found = by_name.find(step.node);
      check(found != by_name.end(), "the plan speaks of a node that the graph has not");
      const NodeId id{found->second};
      if (!graph.node(id).op->is_view) add_step(id, step.workspace_bytes);
    }
    const std::vector<bool> is_result = find_results(graph);
    for (size_t index = 0; index < is_result.size(); ++index)
      if (const int32_t buffer = buffer_of(ValueId{static_cast<int32_t>(index)}); buffer >= 0 && is_result[index])
        problem_.buffers[static_cast<size_t>(buffer)].outlives_step = true;
  }

  const RecomputeProblem& problem() const { return problem_; }

  /// The graph in the order of the events.
  Graph rebuild(const RecomputeChoice& choice) {
    Rewriter rewriter(graph_);
    again_.clear();
    stored_.assign(values_.size(), {});
    std::vector<bool> is_loaded(values_.size(), false);
    for (const RecomputeEvent& event : choice.events)
      if (event.loaded >= 0) is_loaded[static_cast<size_t>(event.loaded)] = true;
    for (const RecomputeEvent& event : choice.events) {
      const auto step = static_cast<size_t>(event.step);
      if (event.loaded >= 0)
        add_load(rewriter, static_cast<size_t>(event.loaded));
      else if (event.is_again)
        add_again(rewriter, repetitions_[step], graph_.node_name(nodes_[step]), choice.fates);
      else
        add_original(rewriter, step, is_loaded);
    }
    const std::vector<bool> is_result = find_results(graph_);
    for (size_t index = 0; index < is_result.size(); ++index)
      if (is_result[index]) original(rewriter, ValueId{static_cast<int32_t>(index)});
    return rewriter.finish();
  }

 private:
  int32_t buffer_of(ValueId value) const { return buffer_[index_of(content_[index_of(value)])]; }

  std::vector<int32_t> buffers_of(const std::vector<ValueId>& values) const {
    std::vector<int32_t> buffers;
    for (const ValueId value : values)
      if (const int32_t buffer = buffer_of(value);
          buffer >= 0 && std::find(buffers.begin(), buffers.end(), buffer) == buffers.end())
        buffers.push_back(buffer);
    return buffers;
  }

  double offload_seconds(ValueId value) const {
    if (offload_bytes_per_second_ <= 0) return -1;
    if (is_separate_ && gives_to_host(*graph_.producer(value))) return -1;  // takes none of the device's memory
    return 2 * static_cast<double>(graph_.type(value).bytes()) / offload_bytes_per_second_;
  }

  void add_step(NodeId id, int64_t workspace_bytes) {
    const Node& node = graph_.node(id);
    RecomputeStep step;
    step.reads = buffers_of(node.inputs);
    if (!node.op->is_update)  // which writes into its states
      for (const ValueId output : node.outputs) {
        buffer_[index_of(output)] = static_cast<int32_t>(problem_.buffers.size());
        if (is_constant_tensor(node))  // no part of the arena: nothing is won by its end
          problem_.buffers.push_back({0, false, -1});
        else
          problem_.buffers.push_back({align_up(graph_.type(output).bytes()), false, offload_seconds(output)});
        values_.push_back(output);
      }
    step.writes = buffers_of(node.outputs);
    for (const auto& [output, input] : node.op->in_place) {
      const auto to = static_cast<size_t>(output), from = static_cast<size_t>(input);
      if (node.op->is_update || to >= node.outputs.size() || from >= node.inputs.size()) continue;
      const int32_t written = buffer_of(node.outputs[to]), read = buffer_of(node.inputs[from]);
      const bool is_taken = std::any_of(step.in_place.begin(), step.in_place.end(),
                                        [&](const auto& pair) { return pair.first == written || pair.second == read; });
      if (read >= 0 && !is_taken && graph_.type(node.outputs[to]) == graph_.type(node.inputs[from]))
        step.in_place.emplace_back(written, read);
    }
    step.workspace_bytes = align_up(workspace_bytes);
    step.is_repeatable = !node.op->is_update && !is_collective(node);
    repetitions_.push_back(step.is_repeatable ? repetition_of(id) : Repetition{});
    const Repetition& again = repetitions_.back();
    step.reads_again = buffers_of(again.inputs);
    step.writes_again = buffers_of(again.outputs);
    if (again.op == node.op->name) step.in_place_again = step.in_place;
    if (step.is_repeatable) {
      const NodeSignature signature = passes::signature_of(graph_, again);
      step.seconds_again = context_.seconds(signature);
      step.workspace_bytes_again = again.op == node.op->name
                                       ? step.workspace_bytes
                                       : align_up(context_.backend.choose_kernel(signature).workspace_bytes);
    }
    problem_.steps.push_back(std::move(step));
    nodes_.push_back(id);
  }

  Repetition repetition_of(NodeId id) const {
    const Node& node = graph_.node(id);
    Repetition again{node.op->name, node.inputs, node.attributes, node.outputs};
    again.attributes.erase(kInPlace);
    if (node.op->name != "batch_norm") return again;
    // With the statistics saved, one sweep is enough. Only of weft's own kernels is it known that both give the same.
    Repetition apply{"batch_norm_inference",
                     {node.inputs[0], node.inputs[1], node.inputs[2], node.outputs[1], node.outputs[2]},
                     again.attributes,
                     {node.outputs[0]}};
    apply.inputs.insert(apply.inputs.end(), node.inputs.begin() + 3, node.inputs.end());
    const std::string measured = context_.backend.choose_kernel(weft::signature_of(graph_, id)).kernel;
    const std::string applied = context_.backend.choose_kernel(passes::signature_of(graph_, apply)).kernel;
    return measured == "native:batch_norm" && applied == "native:batch_norm_inference" ? apply : again;
  }

  /// What stands for a value of the source now: the copy of what was made again, or the original.
  ValueId resolve(Rewriter& rewriter, ValueId value) {
    const auto found = again_.find(content_[index_of(value)]);
    if (found == again_.end()) return original(rewriter, value);
    const auto known = found->second.find(value);
    if (known != found->second.end()) return known->second;
    const Node& view = *graph_.producer(value);
    const ValueId source = resolve(rewriter, view.inputs[0]);
    const ValueId copy =
        rewriter.result().add(view.op->name, {source}, view.attributes, graph_.value(value).name + ".again");
    rewriter.result().set_layout(copy, graph_.type(value).layout);
    return again_[content_[index_of(value)]][value] = copy;
  }

  std::vector<ValueId> resolve(Rewriter& rewriter, const std::vector<ValueId>& values) {
    std::vector<ValueId> resolved;
    for (const ValueId value : values) resolved.push_back(resolve(rewriter, value));
    return resolved;
  }

  /// Views are made where they are first read.
  ValueId original(Rewriter& rewriter, ValueId value) {
    if (!rewriter.is_mapped(value)) {
      const NodeId view = graph_.value(value).producer;
      copy_with(rewriter, view, {original(rewriter, graph_.node(view).inputs[0])}, graph_.node(view).attributes);
    }
    return rewriter.map(value);
  }

  void add_again(Rewriter& rewriter, const Repetition& again, const std::string& name, const std::vector<Fate>& fates) {
    Attributes attributes = again.attributes;
    attributes.set(kRecomputed, true);
    const std::vector<ValueId> inputs = resolve(rewriter, again.inputs);
    const auto outputs = rewriter.result().add_node(again.op, inputs, attributes, name + ".again");
    for (size_t index = 0; index < outputs.size(); ++index) {
      const ValueId source = again.outputs[index];
      rewriter.result().set_layout(outputs[index], graph_.type(source).layout);
      const bool was_dropped = fates[static_cast<size_t>(buffer_of(source))] != Fate::stays;
      if (was_dropped) again_[source] = {{source, outputs[index]}};
    }
  }

  /// The node in its turn, and what of its results is read back later written to the file.
  void add_original(Rewriter& rewriter, size_t step, const std::vector<bool>& is_loaded) {
    const Node& node = graph_.node(nodes_[step]);
    copy_with(rewriter, nodes_[step], resolve(rewriter, node.inputs), node.attributes);
    for (const int32_t written : problem_.steps[step].writes) {
      const auto buffer = static_cast<size_t>(written);
      if (is_loaded[buffer])
        stored_[buffer] = add_store(rewriter.result(), rewriter.map(values_[buffer]), values_[buffer]);
    }
  }

  void add_load(Rewriter& rewriter, size_t buffer) {
    const ValueId value = values_[buffer];
    again_[value] = {{value, add_load(rewriter.result(), stored_[buffer], value)}};
  }

  // Files are written and read from the host's memory.
  ValueId add_store(Graph& result, ValueId from, ValueId source) const {
    if (is_separate_) from = add_transfer(result, kCopyToHost, from, source, ".to_store");
    return add_transfer(result, kStore, from, source, ".stored");
  }
  ValueId add_load(Graph& result, ValueId stored, ValueId source) const {
    if (!is_separate_) return add_transfer(result, kLoad, stored, source, ".loaded");
    const ValueId there = add_transfer(result, kLoad, stored, source, ".loaded_on_host");
    return add_transfer(result, kCopyToDevice, there, source, ".loaded");
  }

  ValueId add_transfer(Graph& result, const char* op, ValueId from, ValueId source, const char* suffix) const {
    const ValueId moved = result.add(op, {from}, {}, graph_.value(source).name + suffix);
    result.set_layout(moved, graph_.type(source).layout);
    return moved;
  }

  const Graph& graph_;
  const PassContext& context_;
  const double offload_bytes_per_second_;
  const bool is_separate_;  // the device's memory from the host's
  const std::vector<ValueId> content_;
  std::vector<int32_t> buffer_;  // per value that owns a buffer, else -1
  RecomputeProblem problem_;
  std::vector<ValueId> values_, stored_;                           // per buffer: of the source; of the result, if any
  std::vector<NodeId> nodes_;                                      // per step
  std::vector<Repetition> repetitions_;                            // per step
  std::unordered_map<ValueId, std::map<ValueId, ValueId>> again_;  // content -> it and its views, as made again last
};

}  // namespace

FittedGraph fit_to_limit(const Graph& graph, const PassContext& context, const PlannedMemory& planned,
                         double offload_bytes_per_second) {
  const int64_t limit = context.arena_limit_bytes;
  RecomputeBuilder builder(graph, context, planned, offload_bytes_per_second);
  std::optional<Graph> best;
  int64_t best_arena = planned.arena_bytes;
  double best_seconds = 0;
  // The plan packs, orders and overwrites a little otherwise than the search assumes. So targets are tried below the
  // limit until one meets it in the plan, and then between this and the last that did not.
  RecomputeChoice choice;
  int64_t target = limit, met_by = 0, missed_by = limit;
  for (int attempt = 0; attempt < kAttempts && target > 0; ++attempt) {
    choice = attempt == 0 ? choose_recompute(builder.problem(), target)
                          : mend_recompute(builder.problem(), target, choice.fates);
    Graph candidate = builder.rebuild(choice);
    const int64_t arena = planned_in_place(candidate, context).arena_bytes;
    const bool is_met = arena <= limit;
    const bool is_better = is_met && best_arena <= limit ? choice.outcome.seconds < best_seconds : arena < best_arena;
    if (is_better) {
      best = std::move(candidate);
      best_arena = arena;
      best_seconds = choice.outcome.seconds;
    }
    if (is_met) {
      if (target == limit || limit - arena <= limit / kNearEnough) break;
      met_by = target;
    } else {
      if (!choice.fits()) break;
      missed_by = target;
    }
    const int64_t below = target - (arena - limit) - limit / 500;
    target = !is_met && below > met_by ? below : (met_by + missed_by) / 2;
  }
  if (!best) return {graph, best_arena};
  return {std::move(*best), best_arena};
}

Graph recompute(const Graph& graph, const PassContext& context) {
  const int64_t limit = context.arena_limit_bytes;
  if (limit <= 0 || !context.plan_memory) return graph;
  const PlannedMemory planned = planned_in_place(graph, context);
  if (planned.arena_bytes <= limit) return graph;
  FittedGraph fitted = fit_to_limit(graph, context, planned, 0);
  // Chosen together with what goes to a file, less has to run again.
  const bool is_left_to_offload = fitted.arena_bytes > limit && context.offload_bytes_per_second > 0;
  if (is_left_to_offload) return graph;
  return std::move(fitted.graph);
}

}  // namespace weft::passes
