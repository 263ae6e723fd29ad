#include "weft/report/work_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "weft/base/format.h"
#include "weft/base/table.h"

namespace weft::report {

std::string work_table(const CountedWork& work) {
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  std::string text = fmt::format(
      "{} nodes, {}FLOP, {} read and written\n"
      "{} reorders of {}, {} casts of {}, {} states copied ({})\n"
      "arena {}, the largest workspace {}, states {}\n\n",
      work.nodes, human_count(static_cast<double>(work.flops)), bytes(work.bytes), work.reorders,
      bytes(work.reorder_bytes), work.casts, bytes(work.cast_bytes), work.state_copies, bytes(work.state_copy_bytes),
      bytes(work.arena_bytes), bytes(work.workspace_bytes), bytes(work.state_bytes));
  std::vector<std::pair<std::pair<std::string, std::string>, int64_t>> kernels(work.kernels.begin(),
                                                                               work.kernels.end());
  std::stable_sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({{"nodes", Align::right}, {"op"}, {"kernel"}});
  for (const auto& [names, count] : kernels) table.add_row({std::to_string(count), names.first, names.second});
  const int64_t kept = std::accumulate(work.kernels_when_bound.begin(), work.kernels_when_bound.end(), int64_t{0},
                                       [](int64_t sum, const auto& entry) { return sum + entry.second; });
  text += table.text();
  if (kept > 0) text += fmt::format("\nand {} copies of weights, made once and kept from step to step\n", kept);
  return text;
}

nlohmann::ordered_json work_json(const CountedWork& work) {
  const auto list = [](const auto& kernels) {
    auto rows = nlohmann::ordered_json::array();
    for (const auto& [names, count] : kernels)
      rows.push_back({{"op", names.first}, {"kernel", names.second}, {"nodes", count}});
    return rows;
  };
  return {{"nodes", work.nodes},
          {"flops", work.flops},
          {"bytes", work.bytes},
          {"reorders", work.reorders},
          {"reorder_bytes", work.reorder_bytes},
          {"casts", work.casts},
          {"cast_bytes", work.cast_bytes},
          {"state_copies", work.state_copies},
          {"state_copy_bytes", work.state_copy_bytes},
          {"arena_bytes", work.arena_bytes},
          {"workspace_bytes", work.workspace_bytes},
          {"state_bytes", work.state_bytes},
          {"kernels", list(work.kernels)},
          {"kernels_when_bound", list(work.kernels_when_bound)}};
}

}  // namespace weft::report
