#include "weft/compile/compile.h"

#include <chrono>

#include "weft/compile/memoized_backend.h"
#include "weft/device/offload_timeline.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/recomputed.h"
#include "weft/graph/verify.h"
#include "weft/passes/inference_pipeline.h"
#include "weft/passes/memory/offload.h"
#include "weft/passes/run_passes.h"
#include "weft/plan/make_plan.h"
#include "weft/plan/read_ahead.h"

namespace weft {

namespace {

/// What a step takes for each second that the rates of a profile, which are those of large work, predict for its nodes.
/// Measured on two cores that other work shared: 1.5 to 1.7 for transformer_lm, 1.7 to 1.8 for resnet50, 1.55 to 2.3
/// for vit_tiny, 2.3 for resnet18. Shares of one step do not depend on it; what a file costs beside the nodes does.
constexpr double kPace = 1.6;

RecomputeReport report_recompute(const Graph& graph, const Plan& plan, const CompileOptions& options) {
  OffloadRates rates;
  if (options.offload_bytes_per_second > 0) rates.disk = options.offload_bytes_per_second;
  OffloadTimeline timeline(rates, plan.threads);
  const std::vector<std::vector<size_t>> ahead_of = find_read_ahead(graph, plan);
  const auto stored = [&](size_t step) { return static_cast<size_t>(stored_value(graph, plan.steps[step]).index); };
  RecomputeReport report;
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const PlannedNode& step = plan.steps[index];
    const Node& node = graph.node(step.node);
    if (is_store(node)) {
      const int64_t bytes = graph.type(node.inputs[0]).bytes();
      timeline.store(stored(index), bytes);
      ++report.offloaded;
      report.offloaded_bytes += bytes;
      continue;
    }
    if (is_load(node)) {
      timeline.load(stored(index));
      for (const size_t later : ahead_of[index]) timeline.ask_ahead(stored(later));
      continue;
    }
    const double seconds = kPace * options.costs->seconds(signature_of(graph, step.node), plan.threads);
    timeline.compute(seconds);
    report.all_flops += step.flops;
    if (!is_recomputed(node)) continue;
    ++report.nodes;
    report.flops += step.flops;
    report.seconds += seconds;
  }
  report.all_seconds = timeline.now();
  report.offload_seconds = timeline.transfer_seconds();
  report.offload_waiting_seconds = timeline.waiting_seconds();
  return report;
}

/// For passes: it runs none.
passes::PlannedMemory planned_memory(const Graph& marked, const Backend& backend, int threads) {
  const Plan plan = make_plan(marked, backend, threads);
  passes::PlannedMemory memory;
  memory.arena_bytes = plan.arena_bytes;
  for (const PlannedNode& step : plan.steps)
    memory.steps.push_back({marked.node_name(step.node), step.workspace_bytes, step.live_bytes});
  return memory;
}

passes::PassContext inference_context(const Backend& backend, const CompileOptions& options) {
  return {.backend = backend,
          .precision = options.precision,
          .threads = options.threads,
          .plan_memory = [&backend, threads = options.threads](
                             const Graph& graph) { return planned_memory(graph, backend, threads); },
          .grants_workspace = options.grants_workspace,
          .costs = options.costs};
}

CompiledStep rewrite_and_plan(const Graph& graph, const std::vector<passes::Pass>& table,
                              const passes::PassContext& context, const Backend& backend,
                              const CompileOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  verify(graph, "building the graph");
  std::vector<passes::PassReport> reports;
  Graph rewritten = passes::run_passes(table, graph, context, options.passes, &reports);
  Plan plan = make_plan(rewritten, backend, options.threads);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return {std::move(rewritten), std::move(plan), std::move(reports), seconds.count(), {}};
}

}  // namespace

passes::PassContext pass_context(const Backend& backend, const CompileOptions& options) {
  passes::PassContext context = inference_context(backend, options);
  const bool may_offload = !passes::leaves_out(options.passes, passes::offload);
  context.arena_limit_bytes = options.arena_limit_bytes;
  context.gathers_rows = options.gathers_rows;
  context.offload_bytes_per_second = may_offload ? options.offload_bytes_per_second : 0;
  context.ranks = options.ranks;
  return context;
}

CompiledStep compile(const Graph& graph, const Backend& backend, const CompileOptions& options) {
  const MemoizedBackend memoized(backend);
  CompiledStep step = rewrite_and_plan(graph, passes::pipeline(), pass_context(memoized, options), memoized, options);
  step.plan.arena_limit_bytes = options.arena_limit_bytes;
  step.recompute = report_recompute(step.graph, step.plan, options);
  return step;
}

CompiledStep compile_inference(const Graph& graph, const Backend& backend, const CompileOptions& options) {
  const MemoizedBackend memoized(backend);
  return rewrite_and_plan(graph, passes::inference_pipeline(), inference_context(memoized, options), memoized, options);
}

}  // namespace weft
