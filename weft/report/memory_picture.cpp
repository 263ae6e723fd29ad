// The memory of a plan as a picture: the bytes by use over the steps, and below it the arena, a box per tensor.
#include <fmt/format.h>

#include <algorithm>

#include "weft/base/format.h"
#include "weft/plot/map.h"
#include "weft/report/memory_timeline.h"

namespace weft::report {

namespace {

constexpr size_t kListed = 24;  // tensors at the peak

std::string bytes_text(double bytes) { return human_bytes(bytes); }

plot::MapPanel by_use(const Graph& graph, const Plan& plan) {
  plot::MapPanel panel{"all memory, by use", {}, {}};
  const std::vector<MemoryBytes> timeline = memory_by_use(graph, plan);
  std::vector<double> low(timeline.size(), 0.0);
  for (size_t use = 0; use < kMemoryUses; ++use) {
    plot::Area area{static_cast<int>(use), {}, low, {}};
    for (size_t step = 0; step < timeline.size(); ++step) {
      area.x.push_back(static_cast<double>(step));
      area.high.push_back(low[step] + static_cast<double>(timeline[step][use]));
    }
    area.x.push_back(static_cast<double>(timeline.size()));
    low = area.high;
    panel.areas.push_back(std::move(area));
  }
  return panel;
}

plot::MapPanel arena_map(const Graph& graph, const Plan& plan) {
  plot::MapPanel panel{"the arena: where each tensor lies, and when", {}, {}};
  const std::vector<MemoryUse> uses = uses_of_blocks(graph, plan);
  const auto add = [&](MemoryUse use, int first, int last, int64_t offset, int64_t bytes, const std::string& name,
                       const std::string& hint) {
    panel.boxes.push_back({static_cast<int>(use), static_cast<double>(first), static_cast<double>(last + 1),
                           static_cast<double>(offset), static_cast<double>(offset + bytes), name, hint});
  };
  const auto node = [&](int step) { return graph.node_name(plan.steps[static_cast<size_t>(step)].node); };
  for (size_t index = 0; index < plan.blocks.size(); ++index) {
    const ArenaBlock& block = plan.blocks[index];
    const Value& value = graph.values()[static_cast<size_t>(block.value.index)];
    add(uses[index], block.first_step, block.last_step, block.offset, block.bytes, value.name,
        fmt::format("{} {}: {}, {}, from {} (step {}) to {} (step {})", value.name, to_string(value.type),
                    bytes_text(static_cast<double>(block.bytes)), name_of(uses[index]), node(block.first_step),
                    block.first_step, node(block.last_step), block.last_step));
  }
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const PlannedNode& step = plan.steps[index];
    const auto at = static_cast<int>(index);
    if (step.workspace_bytes > 0)
      add(MemoryUse::workspace, at, at, step.workspace_offset, step.workspace_bytes, "",
          fmt::format("workspace of {}: {}", node(at), bytes_text(static_cast<double>(step.workspace_bytes))));
  }
  return panel;
}

std::vector<std::string> lines_at_peak(const Graph& graph, const Plan& plan) {
  std::vector<std::string> lines = {"at the peak:"};
  const std::vector<LiveTensor> tensors = live_tensors(graph, plan, plan.peak_step);
  for (size_t index = 0; index < std::min(kListed, tensors.size()); ++index) {
    const LiveTensor& t = tensors[index];
    lines.push_back(fmt::format("{:>9}  {:<12} {} {}  (from {} to {})", bytes_text(static_cast<double>(t.bytes)),
                                name_of(t.use), t.name, t.type, t.made_by, t.last_read_by));
  }
  if (tensors.size() > kListed) lines.push_back(fmt::format("{:>9}  {} more", "", tensors.size() - kListed));
  return lines;
}

}  // namespace

std::string draw_memory_svg(const Graph& graph, const Plan& plan, const std::string& title) {
  plot::Map map;
  map.title = title;
  map.x_label = "steps of the plan, in order";
  for (size_t use = 0; use < kMemoryUses; ++use) map.groups.emplace_back(name_of(static_cast<MemoryUse>(use)));
  map.label_of_y = bytes_text;
  if (!plan.steps.empty()) {
    const PlannedNode& peak = plan.steps[static_cast<size_t>(plan.peak_step)];
    map.panels = {by_use(graph, plan), arena_map(graph, plan)};
    map.mark = plan.peak_step + 0.5;
    map.mark_label = fmt::format("peak: {}", graph.node_name(peak.node));
    map.lines = lines_at_peak(graph, plan);
  }
  return plot::draw_svg(map);
}

}  // namespace weft::report
