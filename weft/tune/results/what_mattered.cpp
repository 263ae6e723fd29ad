#include "weft/tune/results/what_mattered.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace weft::tune {

namespace {

constexpr size_t kLeastResults = 8;   // fewer say nothing about several keys
constexpr double kLeastShare = 0.05;  // of the variance
constexpr size_t kMostKeys = 3;

}  // namespace

Importances importances_of(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  return Forest(measurements_of(settings, trials), {.seed = settings.seed}).importances();
}

std::string what_mattered(const StudySettings& settings, const std::vector<StudyTrial>& trials) {
  if (settings.space.size() < 2 || measurements_of(settings, trials).size() < kLeastResults) return "";
  const std::vector<double> shares = importances_of(settings, trials).keys;
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return shares[a] > shares[b]; });
  order.resize(std::min(order.size(), kMostKeys));
  std::erase_if(order, [&](size_t key) { return shares[key] < kLeastShare; });
  const std::string& objective = settings.objectives.front().name;
  if (order.empty()) return fmt::format("No key alone mattered for {}.", objective);
  std::vector<std::string> others;
  for (const size_t key : order)
    if (key != order.front())
      others.push_back(fmt::format("{} ({:.0f} %)", settings.space[key].name, 100 * shares[key]));
  return fmt::format("What mattered for {}: {}, which decides {:.0f} % of its variance{}{}.", objective,
                     settings.space[order.front()].name, 100 * shares[order.front()], others.empty() ? "" : ", then ",
                     fmt::join(others, ", "));
}

}  // namespace weft::tune
