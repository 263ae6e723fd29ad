#include "weft/program/arena_limit.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::program {

namespace {

std::string bytes(int64_t count) { return human_bytes(static_cast<double>(count)); }

/// "'layer1.0.conv1' (conv2d): 411 MB of operands, results and workspace"
std::string describe_largest_step(const CompiledStep& compiled) {
  const Graph& graph = compiled.graph;
  const PlannedNode* largest = nullptr;
  int64_t most = 0;
  for (const PlannedNode& step : compiled.plan.steps) {
    const Node& node = graph.node(step.node);
    int64_t needed = step.workspace_bytes;
    for (const auto* values : {&node.inputs, &node.outputs})
      for (const ValueId value : *values)
        if (const Placement& placement = compiled.plan.placements[static_cast<size_t>(value.index)];
            placement.where == Placement::Where::arena && placement.space == Space::device)
          needed += graph.type(value).bytes();
    if (needed <= most) continue;
    largest = &step;
    most = needed;
  }
  if (largest == nullptr) return "nothing";
  return fmt::format("'{}' ({}) alone takes {} of operands, results and workspace", graph.node_name(largest->node),
                     graph.node(largest->node).op->name, bytes(most));
}

}  // namespace

int64_t memory_limit_of(const spec::RunSpec& spec) {
  return spec.memory_limit.empty() ? INT64_MAX : parse_bytes(spec.memory_limit).value();
}

int64_t keep_to_least_arena(StepCache& steps, const spec::StepShape& shape) {
  constexpr int kMostTries = 8;
  constexpr double kStep = 0.98;
  const auto arena_within = [&](int64_t limit) {
    steps.limit_arena(limit);
    return steps.compiled(shape).plan.arena_bytes;
  };
  int64_t limit = arena_within(1), least = INT64_MAX;
  for (int tried = 0; tried < kMostTries; ++tried) {
    const int64_t bytes = arena_within(limit);
    if (bytes <= limit) {
      least = bytes;
      limit = static_cast<int64_t>(kStep * static_cast<double>(bytes));
    } else if (least != INT64_MAX) {
      break;
    } else {
      limit = static_cast<int64_t>(static_cast<double>(limit) / kStep);
    }
  }
  return arena_within(std::min(least, limit));
}

void keep_to_memory_limit(StepCache& steps, const spec::RunSpec& spec, int64_t other_bytes) {
  keep_to_memory_limit(steps, spec, other_bytes, spec.batch);
}

void keep_to_memory_limit(StepCache& steps, const spec::RunSpec& spec, int64_t other_bytes,
                          const spec::StepShape& shape, bool seeks_least) {
  if (spec.memory_limit.empty()) return;
  const int64_t limit = memory_limit_of(spec);
  if (other_bytes >= limit)
    fail(ErrorKind::usage,
         "memory_limit = {}: parameters, optimiser state and batches take {} before the first activation; choose a "
         "smaller batch, a smaller model or a higher limit",
         spec.memory_limit, bytes(other_bytes));
  steps.limit_arena(limit - other_bytes);
  if (steps.compiled(shape).plan.arena_bytes <= limit - other_bytes) return;
  if (seeks_least) keep_to_least_arena(steps, shape);
  const CompiledStep& compiled = steps.compiled(shape);
  const PlannedNode& peak = compiled.plan.steps[static_cast<size_t>(compiled.plan.peak_step)];
  fail(ErrorKind::usage,
       "memory_limit = {}: '{}' with batch {} takes {}{}, with what can be computed twice{}: {} of parameters, "
       "optimiser "
       "state and batches, and {} while '{}' runs; {}; choose a batch below {} with accumulate = {}, or a higher "
       "limit{}",
       spec.memory_limit, spec.model.name, shape.batch, bytes(other_bytes + compiled.plan.arena_bytes),
       seeks_least ? " at the least" : "", spec.offload.empty() ? "" : " or kept in a file", bytes(other_bytes),
       bytes(compiled.plan.arena_bytes), compiled.graph.node_name(peak.node), describe_largest_step(compiled),
       shape.batch, 2 * spec.accumulate,
       spec.offload.empty() ? ", or let activations lie in a file: offload = DIR" : "");
}

void require_memory_limit(const spec::RunSpec& spec, int64_t other_bytes, int64_t arena_bytes) {
  if (other_bytes + arena_bytes <= memory_limit_of(spec)) return;
  fail(ErrorKind::usage,
       "memory_limit = {}: evaluation with batch {}, or the update, needs {} of activations beside {} of parameters, "
       "optimiser state and batches; choose a smaller evaluation.batch or a higher limit",
       spec.memory_limit, spec.evaluation.batch, bytes(arena_bytes), bytes(other_bytes));
}

std::string describe_recompute(const CompiledStep& compiled, const spec::RunSpec& spec) {
  const RecomputeReport& report = compiled.recompute;
  if (report.nodes == 0) return "";
  const auto percent_more = [](double part, double own) { return own > 0 ? 100 * part / own : 0.0; };
  return fmt::format(
      "{} nodes run twice{}: +{:.1f} % flops, about +{:.0f} % time", report.nodes,
      spec.memory_limit.empty() ? "" : " to keep within " + spec.memory_limit,
      percent_more(static_cast<double>(report.flops), static_cast<double>(report.all_flops - report.flops)),
      percent_more(report.seconds, report.own_seconds()));
}

std::string describe_offload(const CompiledStep& compiled, const spec::RunSpec& spec) {
  const RecomputeReport& report = compiled.recompute;
  if (report.offloaded == 0) return "";
  const std::string waiting =
      report.offload_waiting_seconds > 0.005 * report.all_seconds
          ? fmt::format(", {} of it waiting for the disk", human_duration(report.offload_waiting_seconds))
          : ", while the disk works beside the step";
  return fmt::format(
      "{} activations, {}, are written to a file in '{}' in each step and read back: about {}, +{:.0f} % time{}, where "
      "the disk moves {} per second",
      report.offloaded, bytes(report.offloaded_bytes), spec.offload, human_duration(report.offload_seconds),
      100 * report.offload_seconds / std::max(report.own_seconds(), 1e-9), waiting, spec.offload_rate);
}

void open_offload_file(Arena& arena, const StepCache& steps, const spec::RunSpec& spec,
                       const std::function<void(const std::string&)>& note) {
  if (spec.offload.empty()) return;
  if (arena.file() == nullptr) arena.open_file(spec.offload);
  arena.file()->reserve(steps.file_bytes());
  if (arena.file()->is_in_memory() && steps.file_bytes() > 0 && note)
    note(fmt::format(
        "offload = '{}' lies in memory itself (tmpfs), so that nothing is saved; give a directory on a disk",
        spec.offload));
}

}  // namespace weft::program
