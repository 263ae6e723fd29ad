#include "weft/plan/plan_json.h"

#include <nlohmann/json.hpp>

namespace weft {

namespace {
const char* name_of(Placement::Where where) {
  constexpr const char* names[] = {"arena", "state", "batch", "scalar", "file", "unused", "constant"};
  return names[static_cast<size_t>(where)];
}
}  // namespace

nlohmann::json to_json(const Plan& plan, const Graph& graph) {
  using nlohmann::json;
  json steps = json::array();
  for (const PlannedNode& step : plan.steps) {
    json row = {{"node", graph.node_name(step.node)},
                {"op", graph.node(step.node).op->name},
                {"kernel", step.kernel},
                {"flops", step.flops},
                {"bytes_read", step.bytes_read},
                {"bytes_written", step.bytes_written},
                {"live_bytes", step.live_bytes}};
    if (step.workspace_bytes > 0) {
      row["workspace_offset"] = step.workspace_offset;
      row["workspace_bytes"] = step.workspace_bytes;
    }
    if (step.before >= 0) row["deferred_before"] = step.before;
    if (!step.declined.empty()) row["declined"] = step.declined;
    steps.push_back(std::move(row));
  }
  json values = json::object();
  for (size_t index = 0; index < plan.placements.size(); ++index) {
    const Placement& placement = plan.placements[index];
    if (placement.where == Placement::Where::unused) continue;
    json& value = values[graph.values()[index].name];
    value = {{"type", to_string(graph.values()[index].type)},
             {"where", name_of(placement.where)},
             {"offset", placement.offset},
             {"bytes", placement.bytes}};
    if (plan.has_spaces) value["space"] = placement.space == Space::host ? "host" : "device";
  }
  json blocks = json::array();
  for (const ArenaBlock& block : plan.blocks) {
    json row = {{"value", graph.values()[static_cast<size_t>(block.value.index)].name},
                {"offset", block.offset},
                {"bytes", block.bytes},
                {"first_step", block.first_step},
                {"last_step", block.last_step}};
    if (block.again_last >= 0) {
      row["again_first"] = block.again_first;
      row["again_last"] = block.again_last;
    }
    blocks.push_back(std::move(row));
  }
  json all = {
      {"graph", graph.name()},
      {"threads", plan.threads},
      {"arena_bytes", plan.arena_bytes},
      {"lower_bound_bytes", plan.lower_bound_bytes},
      {"arena_limit_bytes", plan.arena_limit_bytes},
      {"state_bytes", plan.state_bytes},
      {"batch_bytes", plan.batch_bytes},
      {"file_bytes", plan.file_bytes},
      {"total_bytes", plan.total_bytes()},
      {"peak_node", plan.steps.empty() ? "" : graph.node_name(plan.steps[static_cast<size_t>(plan.peak_step)].node)},
      {"steps", std::move(steps)},
      {"values", std::move(values)},
      {"blocks", std::move(blocks)}};
  if (plan.constant_bytes > 0) all["constant_bytes"] = plan.constant_bytes;
  if (plan.has_spaces) all["host_arena_bytes"] = plan.host_arena_bytes;
  return all;
}

}  // namespace weft
