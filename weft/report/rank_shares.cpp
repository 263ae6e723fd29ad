#include "weft/report/rank_shares.h"

#include <fmt/ranges.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace weft::report {

std::string rank_shares_text(const run::RunDirectory& run, int64_t grains) {
  if (grains == 0) return "";
  std::string text;
  int changes = 0;
  std::ifstream lines(run.metrics());
  for (std::string line; std::getline(lines, line);) {
    if (line.find(R"("kind":"shares")") == std::string::npos) continue;
    const nlohmann::json record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_discarded()) continue;  // a line that is being written
    ++changes;
    text += fmt::format("  from step {} on: {} (before: {})\n", record.at("from_step").get<int64_t>() + 1,
                        fmt::join(record.at("grains").get<std::vector<int64_t>>(), ", "),
                        fmt::join(record.at("before").get<std::vector<int64_t>>(), ", "));
  }
  if (changes == 0) return fmt::format("the ranks' shares of the {} grains of each batch have not changed\n", grains);
  return fmt::format("the ranks' shares of the {} grains of each batch have changed {} time{}:\n", grains, changes,
                     changes == 1 ? "" : "s") +
         text;
}

}  // namespace weft::report
