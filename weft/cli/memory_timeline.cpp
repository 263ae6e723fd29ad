#include "weft/cli/memory_timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/format.h"

namespace weft::cli {

namespace {

constexpr int kBarColumns = 50;

std::string name_of_step(const Graph& graph, const Plan& plan, int step) {
  return graph.node_name(plan.steps[static_cast<size_t>(step)].node);
}

}  // namespace

std::vector<LiveTensor> live_tensors(const Graph& graph, const Plan& plan, int step) {
  std::vector<LiveTensor> result;
  for (const ArenaBlock& block : plan.blocks) {
    if (block.first_step > step || block.last_step < step) continue;
    const Value& value = graph.values()[static_cast<size_t>(block.value.index)];
    result.push_back({value.name, to_string(value.type), block.bytes, name_of_step(graph, plan, block.first_step),
                      name_of_step(graph, plan, block.last_step)});
  }
  const PlannedNode& planned = plan.steps[static_cast<size_t>(step)];
  if (planned.workspace_bytes > 0) {
    const std::string node = name_of_step(graph, plan, step);
    result.push_back({"(workspace)", "", align_up(planned.workspace_bytes), node, node});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const LiveTensor& a, const LiveTensor& b) { return a.bytes > b.bytes; });
  return result;
}

std::string draw_timeline(const Graph& graph, const Plan& plan, int rows) {
  const int steps = static_cast<int>(plan.steps.size());
  if (steps == 0) return "";
  const int groups = std::min(rows, steps);
  const int64_t peak = std::max<int64_t>(1, plan.steps[static_cast<size_t>(plan.peak_step)].live_bytes);
  std::string text;
  for (int group = 0; group < groups; ++group) {
    const int begin = steps * group / groups, end = steps * (group + 1) / groups;
    int largest = begin;
    for (int step = begin; step < end; ++step)
      if (plan.steps[static_cast<size_t>(step)].live_bytes > plan.steps[static_cast<size_t>(largest)].live_bytes)
        largest = step;
    const int64_t live = plan.steps[static_cast<size_t>(largest)].live_bytes;
    const auto bar = static_cast<size_t>(live * kBarColumns / peak);
    text += fmt::format("  step {:>4}  {:>8}  {:<{}}  {}{}\n", largest, human_bytes(static_cast<double>(live)),
                        std::string(bar, '#'), kBarColumns, name_of_step(graph, plan, largest),
                        begin <= plan.peak_step && plan.peak_step < end ? "  <- peak" : "");
  }
  return text;
}

}  // namespace weft::cli
