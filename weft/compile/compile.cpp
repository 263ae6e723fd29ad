#include "weft/compile/compile.h"

#include <chrono>

#include "weft/compile/memoized_backend.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/recomputed.h"
#include "weft/graph/verify.h"
#include "weft/passes/memory/offload.h"
#include "weft/plan/make_plan.h"

namespace weft {

namespace {

RecomputeReport report_recompute(const Graph& graph, const Plan& plan, const CompileOptions& options) {
  const double offload_bytes_per_second = options.offload_bytes_per_second;
  RecomputeReport report;
  for (const PlannedNode& step : plan.steps) {
    const Node& node = graph.node(step.node);
    if (is_store(node) || is_load(node)) {
      const int64_t bytes = graph.type(node.inputs[0]).bytes();
      const double transfer = offload_bytes_per_second > 0 ? static_cast<double>(bytes) / offload_bytes_per_second : 0;
      report.offload_seconds += transfer;
      report.all_seconds += transfer;
      report.offloaded += is_store(node) ? 1 : 0;
      report.offloaded_bytes += is_store(node) ? bytes : 0;
      continue;
    }
    const double seconds = options.costs->seconds(signature_of(graph, step.node), plan.threads);
    report.all_flops += step.flops;
    report.all_seconds += seconds;
    if (!is_recomputed(node)) continue;
    ++report.nodes;
    report.flops += step.flops;
    report.seconds += seconds;
  }
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

}  // namespace

passes::PassContext pass_context(const Backend& backend, const CompileOptions& options) {
  const bool may_offload = !passes::leaves_out(options.passes, passes::offload);
  return {.backend = backend,
          .precision = options.precision,
          .threads = options.threads,
          .arena_limit_bytes = options.arena_limit_bytes,
          .plan_memory = [&backend, threads = options.threads](
                             const Graph& graph) { return planned_memory(graph, backend, threads); },
          .grants_workspace = options.grants_workspace,
          .gathers_rows = options.gathers_rows,
          .offload_bytes_per_second = may_offload ? options.offload_bytes_per_second : 0,
          .ranks = options.ranks,
          .costs = options.costs};
}

CompiledStep compile(const Graph& graph, const Backend& backend, const CompileOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  verify(graph, "building the graph");
  const MemoizedBackend memoized(backend);
  std::vector<passes::PassReport> reports;
  Graph rewritten = passes::run_pipeline(graph, pass_context(memoized, options), options.passes, &reports);
  Plan plan = make_plan(rewritten, memoized, options.threads);
  plan.arena_limit_bytes = options.arena_limit_bytes;
  const RecomputeReport recompute = report_recompute(rewritten, plan, options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return {std::move(rewritten), std::move(plan), std::move(reports), seconds.count(), recompute};
}

}  // namespace weft
