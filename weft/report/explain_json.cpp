#include "weft/report/explain_json.h"

#include <limits>

namespace weft::report {

using nlohmann::ordered_json;

namespace {

ordered_json entries_json(const std::vector<OpProfile>& entries, const Measured& measured = {}) {
  auto rows = ordered_json::array();
  for (const OpProfile& e : entries) {
    ordered_json row = {{"class", e.op_class}};
    if (!e.op.empty()) row.update({{"op", e.op}, {"type", e.dtype}, {"kernel", e.kernel}});
    row.update({{"calls", e.calls},
                {"seconds", e.seconds},
                {"floor_seconds", e.floor_seconds},
                {"memory_floor_seconds", e.memory_floor_seconds},
                {"flops", e.flops},
                {"bytes", e.bytes}});
    if (!e.name.empty()) row["node"] = e.name;
    if (!e.declined.empty()) row["declined"] = e.declined;
    if (const auto times = measured.find(e.name); times != measured.end())
      for (const KernelTime& time : times->second)
        row["measured"].push_back({{"kernel", time.kernel}, {"seconds", time.seconds}});
    rows.push_back(std::move(row));
  }
  return rows;
}

ordered_json rates_json(const MachineRates& rates) {
  const auto arithmetic = [](const ArithmeticRate& rate) {
    return ordered_json{{"flops_per_second", rate.flops_per_second}, {"measured_by", rate.measured_by}};
  };
  auto memory = ordered_json::array();
  for (const MemoryRate& rate : rates.memory) {
    memory.push_back({{"level", rate.level}, {"bytes_per_second", rate.bytes_per_second}});
    if (rate.capacity_bytes < std::numeric_limits<int64_t>::max())
      memory.back()["capacity_bytes"] = rate.capacity_bytes;
  }
  return {{"threads", rates.threads},
          {"f32", arithmetic(rates.f32)},
          {"bf16", arithmetic(rates.bf16)},
          {"memory", memory},
          {"measuring_seconds", rates.measuring_seconds}};
}

ordered_json collectives_json(const std::vector<CollectiveProfile>& collectives) {
  auto rows = ordered_json::array();
  for (const CollectiveProfile& one : collectives)
    rows.push_back({{"tensors", one.tensors},
                    {"kind", one.kind},
                    {"algorithm", one.algorithm},
                    {"bytes", one.bytes},
                    {"starts_at_seconds", one.starts_at},
                    {"predicted_seconds", one.predicted_seconds},
                    {"took_seconds", one.took_seconds},
                    {"start_seconds", one.start_seconds},
                    {"predicted_hidden_seconds", one.predicted_hidden_seconds},
                    {"hidden_seconds", one.hidden_seconds},
                    {"predicted_wait_seconds", one.predicted_wait_seconds},
                    {"wait_seconds", one.wait_seconds}});
  return rows;
}

/// null where there is none.
ordered_json averaging_json(const std::optional<Averaging>& averaging) {
  if (!averaging) return nullptr;
  return {{"period", averaging->period},
          {"states_every", averaging->states_every},
          {"seconds", averaging->seconds},
          {"weight_seconds", averaging->weight_seconds},
          {"collectives", collectives_json(averaging->collectives)}};
}

}  // namespace

ordered_json memory_json(const Explained& explained) {
  const Plan& plan = explained.compiled->plan;
  const Graph& graph = explained.compiled->graph;
  auto timeline = ordered_json::array(), peak = ordered_json::array();
  const std::vector<MemoryBytes> by_use = memory_by_use(graph, plan);
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    const PlannedNode& node = plan.steps[step];
    ordered_json row = {{"node", graph.node_name(node.node)}, {"live_bytes", node.live_bytes}};
    for (const MemoryUse use :
         {MemoryUse::activation, MemoryUse::recomputed, MemoryUse::gradient, MemoryUse::workspace})
      row[std::string(name_of(use))] = by_use[step][static_cast<size_t>(use)];
    timeline.push_back(std::move(row));
  }
  for (const LiveTensor& t : explained.at_peak)
    peak.push_back({{"name", t.name},
                    {"type", t.type},
                    {"use", name_of(t.use)},
                    {"bytes", t.bytes},
                    {"made_by", t.made_by},
                    {"last_read_by", t.last_read_by}});
  const RecomputeReport& again = explained.compiled->recompute;
  return {{"costs", explained.costs},
          {"arena_bytes", plan.arena_bytes},
          {"update_arena_bytes", explained.update ? explained.update->plan.arena_bytes : 0},
          {"lower_bound_bytes", plan.lower_bound_bytes},
          {"arena_limit_bytes", plan.arena_limit_bytes},
          {"state_bytes", plan.state_bytes},
          {"batch_bytes", plan.batch_bytes},
          {"constant_bytes", plan.constant_bytes},
          {"recomputed",
           {{"nodes", again.nodes},
            {"flops", again.flops},
            {"all_flops", again.all_flops},
            {"predicted_seconds", again.seconds},
            {"all_predicted_seconds", again.all_seconds}}},
          {"offloaded",
           {{"values", again.offloaded},
            {"bytes", again.offloaded_bytes},
            {"file_bytes", plan.file_bytes},
            {"predicted_seconds", again.offload_seconds}}},
          {"peak_node", graph.node_name(plan.steps[static_cast<size_t>(plan.peak_step)].node)},
          {"at_peak", peak},
          {"timeline", timeline}};
}

ordered_json explained_json(const Explained& explained) {
  auto passes = ordered_json::array();
  for (const auto& pass : explained.compiled->passes)
    passes.push_back({{"pass", pass.pass},
                      {"seconds", pass.seconds},
                      {"nodes_before", pass.nodes_before},
                      {"nodes_after", pass.nodes_after}});
  return {{"step_seconds", explained.step_seconds},
          {"floor_seconds", explained.floor_seconds},
          {"batches_per_step", explained.batches},
          {"machine", rates_json(explained.rates)},
          {"classes", entries_json(sum_by_class(explained.nodes))},
          {"nodes", entries_json(explained.nodes, explained.measured)},
          {"kernels", entries_json(sum_by_kernel(explained.nodes))},
          {"collectives", collectives_json(explained.collectives)},
          {"averaging", averaging_json(explained.averaging)},
          {"memory", memory_json(explained)},
          {"passes", passes}};
}

}  // namespace weft::report
