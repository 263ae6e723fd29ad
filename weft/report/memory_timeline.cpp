#include "weft/report/memory_timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/format.h"

namespace weft::report {

namespace {

constexpr int kBarColumns = 50;
constexpr std::string_view kLetters = "s#r+w";  // per use

std::string name_of_step(const Graph& graph, const Plan& plan, int step) {
  return graph.node_name(plan.steps[static_cast<size_t>(step)].node);
}

/// So many letters for each use, in sum those of the whole bar.
std::string bar_of(const MemoryBytes& bytes, int64_t full) {
  std::string bar;
  int64_t sum = 0;
  for (size_t use = 0; use < kMemoryUses; ++use) {
    sum += bytes[use];
    bar.resize(static_cast<size_t>(sum * kBarColumns / full), kLetters[use]);
  }
  return bar;
}

}  // namespace

std::vector<LiveTensor> live_tensors(const Graph& graph, const Plan& plan, int step) {
  std::vector<LiveTensor> result;
  const std::vector<MemoryUse> uses = uses_of_blocks(graph, plan);
  for (size_t index = 0; index < plan.blocks.size(); ++index) {
    const ArenaBlock& block = plan.blocks[index];
    if (!lives_at(block, step)) continue;
    const Value& value = graph.values()[static_cast<size_t>(block.value.index)];
    result.push_back({value.name, to_string(value.type), uses[index], block.bytes,
                      name_of_step(graph, plan, block.first_step), name_of_step(graph, plan, block.last_step),
                      block.first_step, block.last_step});
  }
  const PlannedNode& planned = plan.steps[static_cast<size_t>(step)];
  if (planned.workspace_bytes > 0) {
    const std::string node = name_of_step(graph, plan, step);
    result.push_back(
        {"(workspace)", "", MemoryUse::workspace, align_up(planned.workspace_bytes), node, node, step, step});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const LiveTensor& a, const LiveTensor& b) { return a.bytes > b.bytes; });
  return result;
}

std::string draw_timeline(const Graph& graph, const Plan& plan, int rows) {
  const int steps = static_cast<int>(plan.steps.size());
  if (steps == 0) return "";
  const int groups = std::min(rows, steps);
  const std::vector<MemoryBytes> timeline = memory_by_use(graph, plan);
  const int64_t outside = plan.state_bytes + plan.batch_bytes + plan.constant_bytes;
  const int64_t full = std::max<int64_t>(1, outside + plan.steps[static_cast<size_t>(plan.peak_step)].live_bytes);
  std::string text;
  for (int group = 0; group < groups; ++group) {
    const int begin = steps * group / groups, end = steps * (group + 1) / groups;
    int largest = begin;
    for (int step = begin; step < end; ++step)
      if (plan.steps[static_cast<size_t>(step)].live_bytes > plan.steps[static_cast<size_t>(largest)].live_bytes)
        largest = step;
    const int64_t live = plan.steps[static_cast<size_t>(largest)].live_bytes;
    text += fmt::format(
        "  step {:>4}  {:>8}  {:<{}}  {}{}\n", largest, human_bytes(static_cast<double>(outside + live)),
        bar_of(timeline[static_cast<size_t>(largest)], full), kBarColumns, name_of_step(graph, plan, largest),
        begin <= plan.peak_step && plan.peak_step < end ? "  <- peak" : "");
  }
  text += "  ";
  for (size_t use = 0; use < kMemoryUses; ++use)
    text += fmt::format("{} {}{}", kLetters[use], name_of(static_cast<MemoryUse>(use)),
                        use + 1 < kMemoryUses ? "   " : "\n");
  return text;
}

}  // namespace weft::report
