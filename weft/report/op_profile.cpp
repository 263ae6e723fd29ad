#include "weft/report/op_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/graph/accumulation.h"
#include "weft/graph/kept.h"
#include "weft/report/op_class.h"

namespace weft::report {

namespace {

void sort_by_distance(std::vector<OpProfile>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const OpProfile& a, const OpProfile& b) {
    return a.seconds_above_floor() > b.seconds_above_floor();
  });
}

DType computes_in(const Graph& graph, const Node& node) {
  DType narrowest = graph.type(node.outputs[0]).dtype;
  for (const auto* values : {&node.outputs, &node.inputs})
    for (const ValueId value : *values) {
      const DType dtype = graph.type(value).dtype;
      if (is_floating(dtype) && (!is_floating(narrowest) || unpacked_size(dtype) < unpacked_size(narrowest)))
        narrowest = dtype;
    }
  return narrowest;
}

std::string rate(int64_t amount, double seconds) {
  return amount == 0 || seconds <= 0 ? "-" : fmt::format("{:.1f}", static_cast<double>(amount) / seconds / 1e9);
}

void add_to(OpProfile& sum, const OpProfile& entry) {
  sum.calls += entry.calls;
  sum.seconds += entry.seconds;
  sum.flops += entry.flops;
  sum.bytes += entry.bytes;
  sum.floor_seconds += entry.floor_seconds;
  sum.memory_floor_seconds += entry.memory_floor_seconds;
}

template <typename Key>
std::vector<OpProfile> sorted_values(std::map<Key, OpProfile>& sums) {
  std::vector<OpProfile> entries;
  for (auto& [key, sum] : sums) entries.push_back(std::move(sum));
  sort_by_distance(entries);
  return entries;
}

std::string share_of(double part, double whole) { return fmt::format("{:.1f} %", whole > 0 ? 100 * part / whole : 0); }

/// How many times the floor; small nodes, whose floor is next to nothing, take what a call takes.
std::string times_floor(const OpProfile& entry) {
  const double times = entry.floor_seconds > 0 ? entry.seconds / entry.floor_seconds : 1000;
  return times < 100 ? fmt::format("{:.2f}", times) : "> 100";
}

std::string bound_by(const OpProfile& entry) {
  if (entry.floor_seconds <= 0) return "-";
  const double memory = entry.memory_floor_seconds / entry.floor_seconds;
  return memory > 0.9 ? "memory" : memory < 0.1 ? "arithmetic" : fmt::format("memory {:.0f} %", 100 * memory);
}

double total_seconds(const std::vector<OpProfile>& entries) {
  double total = 0;
  for (const OpProfile& entry : entries) total += entry.seconds;
  return total;
}

/// Without floors also without the amounts of work that they are made of.
Table table_of(const std::vector<OpProfile>& entries, size_t rows, bool with_floors) {
  const double total = total_seconds(entries);
  const bool has_names = !entries.empty() && !entries.front().name.empty();
  std::vector<Column> columns{{"time", Align::right}, {"share", Align::right}};
  if (with_floors)
    columns.insert(columns.end(), {{"floor", Align::right}, {"times floor", Align::right}, {"flops", Align::right}});
  columns.push_back({"GFLOP/s", Align::right});
  if (with_floors) columns.push_back({"bytes", Align::right});
  columns.insert(columns.end(), {{"GB/s", Align::right}, {"op"}, {"type"}, {"kernel"}, {has_names ? "node" : "calls"}});
  Table table(std::move(columns));
  for (size_t index = 0; index < std::min(rows, entries.size()); ++index) {
    const OpProfile& entry = entries[index];
    std::vector<std::string> cells{human_duration(entry.seconds), share_of(entry.seconds, total)};
    if (with_floors)
      cells.insert(cells.end(), {human_duration(entry.floor_seconds), times_floor(entry),
                                 entry.flops == 0 ? "-" : human_count(static_cast<double>(entry.flops))});
    cells.push_back(rate(entry.flops, entry.seconds));
    if (with_floors) cells.push_back(human_bytes(static_cast<double>(entry.bytes)));
    cells.insert(cells.end(), {rate(entry.bytes, entry.seconds), entry.op, entry.dtype, entry.kernel,
                               entry.name.empty() ? std::to_string(entry.calls) : entry.name});
    table.add_row(cells);
  }
  return table;
}

}  // namespace

Profile median_profile(const std::vector<Profile>& profiles) {
  Profile median;
  if (profiles.empty() || profiles.front().runs == 0) return median;
  median.runs = 1;
  const size_t middle = (profiles.size() - 1) / 2;
  for (size_t node = 0; node < profiles.front().seconds.size(); ++node) {
    std::vector<double> seconds;
    for (const Profile& profile : profiles)
      seconds.push_back(profile.seconds[node] / static_cast<double>(profile.runs));
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(middle), seconds.end());
    median.seconds.push_back(seconds[middle]);
  }
  return median;
}

std::vector<OpProfile> profile_nodes(const Graph& graph, const Plan& plan, const Profile& profile,
                                     const MachineRates& rates, int64_t calls) {
  std::vector<OpProfile> entries;
  const std::vector<bool> is_completing = find_completing(graph);  // once in so many calls
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const PlannedNode& planned = plan.steps[index];
    const Node& node = graph.node(planned.node);
    const double seconds = profile.seconds.empty() ? 0 : profile.seconds[index];
    // What is kept ran before, or, where the states are bound again after an update apart, once for all its batches.
    if (node.op->is_view || (is_kept(node) && seconds == 0)) continue;
    const int64_t times = is_kept(node) || is_completing[static_cast<size_t>(planned.node.index)] ? 1 : calls;
    const double runs = static_cast<double>(std::max<int64_t>(1, profile.runs));
    const DType dtype = computes_in(graph, node);
    const int64_t bytes = planned.bytes_read + planned.bytes_written;
    const bool narrow = node.op->precision == PrecisionRule::reduced && dtype == DType::bf16;
    const Floor floor = rates.floor(planned.flops, bytes, narrow);
    const double floor_seconds = static_cast<double>(times) * floor.seconds;
    entries.push_back({.name = graph.node_name(planned.node),
                       .op_class = std::string(class_of(*node.op)),
                       .op = node.op->name,
                       .kernel = planned.kernel,
                       .dtype = std::string(name_of(dtype)),
                       .declined = planned.declined,
                       .calls = times,
                       .seconds = static_cast<double>(calls) * seconds / runs,
                       .flops = times * planned.flops,
                       .bytes = times * bytes,
                       .floor_seconds = floor_seconds,
                       .memory_floor_seconds = floor.is_memory ? floor_seconds : 0});
  }
  sort_by_distance(entries);
  return entries;
}

std::vector<OpProfile> merged(std::vector<OpProfile> one, const std::vector<OpProfile>& other) {
  one.insert(one.end(), other.begin(), other.end());
  sort_by_distance(one);
  return one;
}

std::vector<OpProfile> sum_by_kernel(const std::vector<OpProfile>& nodes) {
  std::map<std::array<std::string, 3>, OpProfile> sums;
  for (const OpProfile& node : nodes) {
    const auto [found, is_new] = sums.try_emplace({node.op, node.dtype, node.kernel});
    OpProfile& sum = found->second;
    if (is_new) {
      sum.op_class = node.op_class;
      sum.op = node.op;
      sum.kernel = node.kernel;
      sum.dtype = node.dtype;
      sum.calls = 0;
    }
    add_to(sum, node);
  }
  return sorted_values(sums);
}

std::vector<OpProfile> sum_by_class(const std::vector<OpProfile>& nodes) {
  std::map<std::string, OpProfile> sums;
  for (const OpProfile& node : nodes) {
    const auto [found, is_new] = sums.try_emplace(node.op_class);
    OpProfile& sum = found->second;
    if (is_new) {
      sum.op_class = node.op_class;
      sum.calls = 0;
    }
    add_to(sum, node);
  }
  return sorted_values(sums);
}

Table profile_table(const std::vector<OpProfile>& entries, size_t rows) {
  return table_of(entries, rows, /*with_floors=*/true);
}

Table time_table(std::vector<OpProfile> entries, size_t rows) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const OpProfile& a, const OpProfile& b) { return a.seconds > b.seconds; });
  return table_of(entries, rows, /*with_floors=*/false);
}

Table class_table(const std::vector<OpProfile>& classes) {
  const double total = total_seconds(classes);
  Table table({{"class of op"},
               {"calls", Align::right},
               {"time", Align::right},
               {"share", Align::right},
               {"floor", Align::right},
               {"above it", Align::right},
               {"times floor", Align::right},
               {"bound by"}});
  const auto add_row = [&](const std::string& name, const OpProfile& entry) {
    table.add_row({name, std::to_string(entry.calls), human_duration(entry.seconds), share_of(entry.seconds, total),
                   human_duration(entry.floor_seconds), share_of(entry.seconds_above_floor(), total),
                   times_floor(entry), bound_by(entry)});
  };
  OpProfile all;
  all.calls = 0;
  for (const OpProfile& entry : classes) {
    add_row(entry.op_class, entry);
    add_to(all, entry);
  }
  table.add_rule();
  add_row("all", all);
  return table;
}

std::string describe(const MachineRates& rates) {
  const auto arithmetic = [](const ArithmeticRate& rate, const char* type) {
    return fmt::format("{:.0f} GFLOP/s in {} ({})", rate.flops_per_second / 1e9, type, rate.measured_by);
  };
  std::string text = fmt::format("this machine, on {} {}: {}", rates.threads, rates.threads == 1 ? "thread" : "threads",
                                 arithmetic(rates.f32, "f32"));
  if (rates.bf16.flops_per_second > rates.f32.flops_per_second) text += ", " + arithmetic(rates.bf16, "bf16");
  for (const MemoryRate& memory : rates.memory) {
    text += fmt::format(", {:.0f} GB/s {}", memory.bytes_per_second / 1e9, memory.level);
    if (memory.capacity_bytes < std::numeric_limits<int64_t>::max())
      text += fmt::format(" (up to {})", human_bytes(static_cast<double>(memory.capacity_bytes)));
  }
  return text + fmt::format("; measured in {}", human_duration(rates.measuring_seconds));
}

}  // namespace weft::report
