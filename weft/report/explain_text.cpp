#include "weft/report/explain_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <optional>

#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/recomputed.h"
#include "weft/report/shared_states.h"
#include "weft/run/summary.h"

namespace weft::report {

namespace {

constexpr int kTimelineRows = 24;
constexpr size_t kPeakRows = 12;

bool is_transfer(const Node& node) { return is_store(node) || is_load(node); }

/// ", measured +12 %", of what `counts` counts over what would run without a limit; nothing where no step was run.
std::string measured_extra(const Explained& explained, bool (*counts)(const Node&)) {
  double counted = 0, extra = 0;
  for (const OpProfile& node : explained.nodes) {
    const Graph& graph = explained.compiled->graph;
    const ValueId value = graph.find_value(node.name);
    const Node* producer = value.valid() ? graph.producer(value) : nullptr;
    if (producer == nullptr) continue;
    if (counts(*producer)) counted += node.seconds;
    if (is_recomputed(*producer) || is_transfer(*producer)) extra += node.seconds;
  }
  if (counted == 0) return "";
  return fmt::format(", measured +{:.0f} %", 100 * counted / (explained.step_seconds - extra));
}

std::string table_of(const std::vector<passes::PassReport>& reports) {
  Table table(
      {{"pass"}, {"milliseconds", Align::right}, {"nodes before", Align::right}, {"nodes after", Align::right}});
  for (const passes::PassReport& report : reports)
    table.add_row({report.pass, fmt::format("{:.2f}", 1e3 * report.seconds), std::to_string(report.nodes_before),
                   std::to_string(report.nodes_after)});
  return table.text();
}

std::string costs_line(const Explained& explained) { return "costs of nodes in this plan: " + explained.costs; }

}  // namespace

Table nodes_table(const Explained& explained, size_t rows) {
  std::vector<OpProfile> nodes = explained.nodes;
  for (OpProfile& node : nodes) {
    const auto found = explained.measured.find(node.name);
    if (found == explained.measured.end() || found->second.size() < 2) continue;
    const std::vector<KernelTime>& times = found->second;
    node.kernel += fmt::format(" ({:.2f} times as fast as {})", times[1].seconds / times[0].seconds, times[1].kernel);
  }
  return profile_table(nodes, rows);
}

std::string floor_text(const Explained& explained) {
  return fmt::format(
      "{}\nfloors, of what each node computes or moves at these rates, add up to {}: {:.0f} % of the step\n",
      describe(explained.rates), human_duration(explained.floor_seconds),
      100 * explained.floor_seconds / explained.step_seconds);
}

std::string time_text(const Explained& explained, size_t rows) {
  return fmt::format("{}\n{}\n{}\nnodes furthest above their floor:\n{}\n", floor_text(explained),
                     class_table(sum_by_class(explained.nodes)).text(),
                     profile_table(sum_by_kernel(explained.nodes), explained.nodes.size()).text(),
                     nodes_table(explained, rows).text());
}

std::string memory_summary(const Explained& explained) {
  const Plan& plan = explained.compiled->plan;
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  std::string text;
  const auto to = std::back_inserter(text);
  fmt::format_to(to, "memory: arena {} (no placement can need less than {}), state {}, batch {}{}\n\n",
                 bytes(plan.arena_bytes), bytes(plan.lower_bound_bytes), bytes(plan.state_bytes),
                 bytes(plan.batch_bytes),
                 plan.constant_bytes > 0 ? fmt::format(", constants {}", bytes(plan.constant_bytes)) : "");
  if (const std::string shared = shared_states_text(explained.compiled->graph); !shared.empty())
    fmt::format_to(to, "{}\n", shared);
  if (explained.update != nullptr)
    fmt::format_to(to, "the update after {} batches: arena {}; what follows is of a batch\n\n", explained.batches,
                   bytes(explained.update->plan.arena_bytes));
  const RecomputeReport& again = explained.compiled->recompute;
  if (again.nodes > 0)
    fmt::format_to(to, "{} nodes run twice to save memory: {}FLOP more (+{:.1f} %), predicted +{:.0f} % time{}\n\n",
                   again.nodes, human_count(static_cast<double>(again.flops)),
                   100 * static_cast<double>(again.flops) / static_cast<double>(again.all_flops - again.flops),
                   100 * again.seconds / again.own_seconds(), measured_extra(explained, is_recomputed));
  if (again.offloaded > 0)
    fmt::format_to(to,
                   "{} activations lie in a file between their uses: {} written and read in each step, {} on the disk, "
                   "predicted +{:.0f} % time{}\n\n",
                   again.offloaded, bytes(again.offloaded_bytes), bytes(plan.file_bytes),
                   100 * again.offload_seconds / again.own_seconds(), measured_extra(explained, is_transfer));
  fmt::format_to(to, "{}\n", costs_line(explained));
  return text;
}

std::string peak_text(const Explained& explained) {
  const Plan& plan = explained.compiled->plan;
  const Graph& graph = explained.compiled->graph;
  const PlannedNode& peak = plan.steps[static_cast<size_t>(plan.peak_step)];
  std::string text = fmt::format("peak: {} while '{}' ({}) runs, step {}; what stands there:\n",
                                 human_bytes(static_cast<double>(peak.live_bytes)), graph.node_name(peak.node),
                                 graph.node(peak.node).op->name, plan.peak_step);
  MemoryBytes sums{};
  for (const LiveTensor& t : explained.at_peak) sums[static_cast<size_t>(t.use)] += t.bytes;
  std::string parts;
  for (size_t use = 0; use < kMemoryUses; ++use)
    if (sums[use] > 0)
      parts += fmt::format("{}{} of {}", parts.empty() ? "" : ", ", human_bytes(static_cast<double>(sums[use])),
                           name_of(static_cast<MemoryUse>(use)));
  return text + parts + "\n";
}

Table peak_table(const Explained& explained) {
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  Table table({{"bytes", Align::right}, {"use"}, {"tensor"}, {"type"}, {"made by"}, {"last read by"}, {"steps"}});
  int64_t rest = 0;
  for (size_t index = 0; index < explained.at_peak.size(); ++index) {
    const LiveTensor& t = explained.at_peak[index];
    if (index < kPeakRows)
      table.add_row({bytes(t.bytes), std::string(name_of(t.use)), t.name, t.type, t.made_by, t.last_read_by,
                     fmt::format("{}-{}", t.first_step, t.last_step)});
    else
      rest += t.bytes;
  }
  if (rest > 0)
    table.add_row({bytes(rest), "", fmt::format("{} more", explained.at_peak.size() - kPeakRows), "", "", "", ""});
  return table;
}

std::string memory_text(const Explained& explained) {
  const CompiledStep& step = *explained.compiled;
  return fmt::format("{}\n{}\n{}{}", memory_summary(explained), draw_timeline(step.graph, step.plan, kTimelineRows),
                     peak_text(explained), peak_table(explained).text());
}

std::string audit_text(const run::RunDirectory& run) {
  std::error_code code;
  if (!std::filesystem::exists(run.summary(), code)) return "";
  const std::optional<run::Summary> summary = run::parse_summary(read_text(run.summary()));
  if (!summary) return "";
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  std::string text =
      fmt::format("\nin training: arena {} planned, {} allocated; all memory {} planned, {} measured; {:.0f} {}/s\n",
                  bytes(summary->planned_peak_bytes), bytes(summary->arena_bytes), bytes(summary->planned_total_bytes),
                  bytes(summary->rss_growth_bytes), summary->items_per_second, summary->item);
  if (summary->step_seconds > 0)
    text +=
        fmt::format("steps waited {} of {} for their batches: {:.2f} %\n", human_duration(summary->input_wait_seconds),
                    human_duration(summary->step_seconds), 100 * summary->input_wait_seconds / summary->step_seconds);
  if (summary->damaged_samples > 0) text += fmt::format("damaged samples passed over: {}\n", summary->damaged_samples);
  return text;
}

std::string passes_text(const Explained& explained) {
  std::string text = costs_line(explained) + "\n\n" + table_of(explained.compiled->passes);
  if (explained.update != nullptr)
    text += fmt::format("\nthe update after {} batches:\n{}", explained.batches, table_of(explained.update->passes));
  return text;
}

}  // namespace weft::report
