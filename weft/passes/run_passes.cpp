#include "weft/passes/run_passes.h"

#include <algorithm>
#include <chrono>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/graph/verify.h"

namespace weft::passes {

std::string known_name(const std::vector<Pass>& table, const std::string& name) {
  if (name == "filter_by_tiles") return "mark_winograd";
  if (name == "overlap_all_gathers") return "overlap_collectives";
  std::vector<std::string> names;
  for (const Pass& pass : table) names.push_back(pass.name);
  if (std::find(names.begin(), names.end(), name) == names.end())
    fail(ErrorKind::usage, "there is no pass '{}'{}", name, suggestion(name, names));
  return name;
}

namespace {

/// What planning makes of the graph that the pass would see planned, once the passes after it have run, without a
/// limit.
std::optional<PlannedMemory> forecast(const std::vector<Pass>& table, const Pass& pass, const Graph& graph,
                                      const PassContext& context, const std::vector<std::string>& disabled) {
  if (!pass.to_forecast || !context.plan_memory) return std::nullopt;
  const std::optional<Graph> asked = pass.to_forecast(graph, context);
  if (!asked) return std::nullopt;
  PassContext unlimited = context;
  unlimited.plan_memory = {};
  unlimited.arena_limit_bytes = 0;
  unlimited.offload_bytes_per_second = 0;
  const PipelineOptions rest = {.disabled = disabled, .stop_after = {}, .on_graph = {}, .start_after = pass.name};
  return context.plan_memory(run_passes(table, *asked, unlimited, rest));
}

}  // namespace

Graph run_passes(const std::vector<Pass>& table, const Graph& graph, const PassContext& context,
                 const PipelineOptions& options, std::vector<PassReport>* reports) {
  std::vector<std::string> disabled;
  for (const std::string& name : options.disabled) disabled.push_back(known_name(table, name));
  const std::string start_after = options.start_after.empty() ? "" : known_name(table, options.start_after);
  const std::string stop_after = options.stop_after.empty() ? "" : known_name(table, options.stop_after);
  Graph current = graph;
  bool has_started = start_after.empty();
  for (const Pass& pass : table) {
    if (!has_started) {
      has_started = pass.name == start_after;
      continue;
    }
    if (std::find(disabled.begin(), disabled.end(), pass.name) == disabled.end()) {
      const size_t nodes_before = current.nodes().size();
      const auto begin = std::chrono::steady_clock::now();
      PassContext own = context;
      own.forecast = forecast(table, pass, current, context, disabled);
      current = pass.run(current, own);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      verify(current, pass.name);
      if (reports != nullptr) reports->push_back({pass.name, seconds.count(), nodes_before, current.nodes().size()});
      if (options.on_graph) options.on_graph(pass.name, current);
    }
    if (pass.name == stop_after) break;
  }
  return current;
}

}  // namespace weft::passes
