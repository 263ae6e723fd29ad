#include "weft/cli/op_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "weft/base/format.h"
#include "weft/base/table.h"

namespace weft::cli {

namespace {

void sort_by_time(std::vector<OpProfile>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const OpProfile& a, const OpProfile& b) { return a.seconds > b.seconds; });
}

std::string computes_in(const Graph& graph, const Node& node) {
  DType narrowest = graph.type(node.outputs[0]).dtype;
  for (const auto* values : {&node.outputs, &node.inputs})
    for (const ValueId value : *values) {
      const DType dtype = graph.type(value).dtype;
      if (is_floating(dtype) && (!is_floating(narrowest) || size_of(dtype) < size_of(narrowest))) narrowest = dtype;
    }
  return std::string(name_of(narrowest));
}

std::string rate(int64_t amount, double seconds) {
  return amount == 0 || seconds <= 0 ? "-" : fmt::format("{:.1f}", static_cast<double>(amount) / seconds / 1e9);
}

}  // namespace

std::vector<OpProfile> profile_nodes(const Graph& graph, const Plan& plan, const Profile& profile, int64_t calls) {
  std::vector<OpProfile> entries;
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const PlannedNode& planned = plan.steps[index];
    const Node& node = graph.node(planned.node);
    if (node.op->is_view) continue;
    const double runs = static_cast<double>(std::max<int64_t>(1, profile.runs));
    entries.push_back(
        {.name = graph.node_name(planned.node),
         .op = node.op->name,
         .kernel = planned.kernel,
         .dtype = computes_in(graph, node),
         .declined = planned.declined,
         .calls = calls,
         .seconds = profile.seconds.empty() ? 0 : static_cast<double>(calls) * profile.seconds[index] / runs,
         .flops = calls * planned.flops,
         .bytes = calls * (planned.bytes_read + planned.bytes_written)});
  }
  sort_by_time(entries);
  return entries;
}

std::vector<OpProfile> merged(std::vector<OpProfile> one, const std::vector<OpProfile>& other) {
  one.insert(one.end(), other.begin(), other.end());
  sort_by_time(one);
  return one;
}

std::vector<OpProfile> sum_by_kernel(const std::vector<OpProfile>& nodes) {
  std::map<std::array<std::string, 3>, OpProfile> sums;
  for (const OpProfile& node : nodes) {
    const auto [found, is_new] = sums.try_emplace({node.op, node.dtype, node.kernel});
    OpProfile& sum = found->second;
    if (is_new) {
      sum.op = node.op;
      sum.kernel = node.kernel;
      sum.dtype = node.dtype;
      sum.calls = 0;
    }
    sum.calls += node.calls;
    sum.seconds += node.seconds;
    sum.flops += node.flops;
    sum.bytes += node.bytes;
  }
  std::vector<OpProfile> entries;
  for (auto& [key, sum] : sums) entries.push_back(std::move(sum));
  sort_by_time(entries);
  return entries;
}

std::string profile_table(const std::vector<OpProfile>& entries, size_t rows) {
  double total = 0;
  bool has_names = false;
  for (const OpProfile& entry : entries) {
    total += entry.seconds;
    has_names = has_names || !entry.name.empty();
  }
  Table table({{"time", Align::right},
               {"share", Align::right},
               {"flops", Align::right},
               {"GFLOP/s", Align::right},
               {"bytes", Align::right},
               {"GB/s", Align::right},
               {"op"},
               {"type"},
               {"kernel"},
               {has_names ? "node" : "calls"}});
  for (size_t index = 0; index < std::min(rows, entries.size()); ++index) {
    const OpProfile& entry = entries[index];
    table.add_row({human_duration(entry.seconds), fmt::format("{:.1f} %", total > 0 ? 100 * entry.seconds / total : 0),
                   entry.flops == 0 ? "-" : human_count(static_cast<double>(entry.flops)),
                   rate(entry.flops, entry.seconds), human_bytes(static_cast<double>(entry.bytes)),
                   rate(entry.bytes, entry.seconds), entry.op, entry.dtype, entry.kernel,
                   entry.name.empty() ? std::to_string(entry.calls) : entry.name});
  }
  return table.text();
}

}  // namespace weft::cli
