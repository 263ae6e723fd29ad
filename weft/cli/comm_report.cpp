#include "weft/cli/comm_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "weft/base/format.h"
#include "weft/base/table.h"
#include "weft/graph/collective.h"
#include "weft/passes/overlap_all_gathers.h"
#include "weft/passes/overlap_all_reduces.h"

namespace weft::cli {

std::vector<CollectiveProfile> profile_collectives(const Graph& graph, const Plan& plan, const Profile& profile,
                                                   const passes::Ranks& ranks) {
  std::vector<CollectiveProfile> collectives;
  std::map<std::pair<bool, int64_t>, size_t> under_way;  // by kind and number
  double now = 0;
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const Node& node = graph.node(plan.steps[index].node);
    const double seconds = profile.seconds[index];
    const bool gathers = is_gather(node);
    if (is_collective_wait(node)) {
      CollectiveProfile& ended = collectives[under_way.at({gathers, node.attributes.integer("number")})];
      ended.hidden_seconds = std::max(0.0, now - ended.starts_at - ended.start_seconds);
      ended.wait_seconds = seconds;
    } else if (is_collective(node)) {
      const bool is_half = is_collective_start(node);
      CollectiveProfile begun{
          .tensors = is_half ? node.attributes.text("tensors") : graph.node_name(plan.steps[index].node),
          .gathers = gathers,
          .dtype = graph.type(node.inputs[0]).dtype,
          .starts_at = now};
      for (const ValueId input : node.inputs) begun.bytes += graph.type(input).bytes();
      begun.predicted_seconds = gathers ? passes::predicted_gather_seconds(ranks, begun.bytes * ranks.count)
                                        : passes::predicted_seconds(ranks, begun.bytes);
      (is_half ? begun.start_seconds : begun.wait_seconds) = seconds;
      if (is_half) under_way[{gathers, node.attributes.integer("number")}] = collectives.size();
      collectives.push_back(std::move(begun));
    }
    now += seconds;
  }
  return collectives;
}

std::string collectives_table(const std::vector<CollectiveProfile>& collectives, double step_seconds) {
  const auto milliseconds = [](double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); };
  Table table({{"reduced over the ranks, or gathered"},
               {"by"},
               {"bytes", Align::right},
               {"starts at ms", Align::right},
               {"predicted", Align::right},
               {"starting", Align::right},
               {"computing", Align::right},
               {"waiting", Align::right}});
  int64_t bytes = 0;
  double spent = 0;
  for (const CollectiveProfile& one : collectives) {
    table.add_row({one.tensors, one.algorithm, human_bytes(static_cast<double>(one.bytes)), milliseconds(one.starts_at),
                   milliseconds(one.predicted_seconds), milliseconds(one.start_seconds),
                   milliseconds(one.hidden_seconds), milliseconds(one.wait_seconds)});
    bytes += one.bytes;
    spent += one.start_seconds + one.wait_seconds;
  }
  return fmt::format(
      "{}\n{} collectives of {} in each step; starting them and waiting for them takes {}, {:.1f} % of it\n",
      table.text(), collectives.size(), human_bytes(static_cast<double>(bytes)), human_duration(spent),
      step_seconds > 0 ? 100 * spent / step_seconds : 0);
}

}  // namespace weft::cli
