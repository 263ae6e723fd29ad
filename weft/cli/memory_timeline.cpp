#include "weft/cli/memory_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "weft/base/format.h"

namespace weft::cli {

namespace {

constexpr int kBarColumns = 50;

struct Lifetime {
  int first = -1, last = -1;  // indices into plan.steps
};

std::vector<Lifetime> lifetimes(const Graph& graph, const Plan& plan) {
  std::vector<Lifetime> lives(graph.values().size());
  const auto life = [&](ValueId value) -> Lifetime& { return lives[static_cast<size_t>(value.index)]; };
  const int steps = static_cast<int>(plan.steps.size());
  for (int step = 0; step < steps; ++step) {
    const Node& node = graph.node(plan.steps[static_cast<size_t>(step)].node);
    for (const ValueId value : node.outputs) life(value) = {step, step};
    for (const ValueId value : node.inputs) life(value).last = step;
  }
  // Read after the step, so never overwritten in it.
  for (const GraphOutput& output : graph.outputs()) life(output.value).last = steps - 1;
  for (const StateUpdate& update : graph.updates()) life(update.value).last = steps - 1;
  return lives;
}

std::string name_of_step(const Graph& graph, const Plan& plan, int step) {
  return step < 0 ? "" : graph.node_name(plan.steps[static_cast<size_t>(step)].node);
}

}  // namespace

std::vector<LiveTensor> live_tensors(const Graph& graph, const Plan& plan, int step) {
  const std::vector<Lifetime> lives = lifetimes(graph, plan);
  std::map<int64_t, std::pair<LiveTensor, Lifetime>> by_offset;
  for (size_t index = 0; index < graph.values().size(); ++index) {
    const Placement& placement = plan.placements[index];
    const Lifetime& life = lives[index];
    if (placement.where != Placement::Where::arena || life.first > step || life.last < step || life.first < 0) continue;
    const Value& value = graph.values()[index];
    auto [found, is_new] = by_offset.try_emplace(placement.offset);
    auto& [tensor, first_life] = found->second;
    if (is_new || life.first < first_life.first) {
      tensor.name = value.name;
      tensor.type = to_string(value.type);
      tensor.made_by = name_of_step(graph, plan, life.first);
      first_life.first = life.first;
    }
    if (life.last > first_life.last) {
      first_life.last = life.last;
      tensor.last_read_by = name_of_step(graph, plan, life.last);
    }
    tensor.bytes = std::max(tensor.bytes, align_up(placement.bytes));
  }
  std::vector<LiveTensor> result;
  for (auto& [offset, entry] : by_offset) result.push_back(std::move(entry.first));
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
