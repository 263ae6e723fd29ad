#include "weft/base/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace weft {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> previous(b.size() + 1), current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
    }
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  int best_distance = std::max<int>(2, static_cast<int>(name.size()) / 3) + 1;
  for (const auto& candidate : candidates) {
    const int distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(name, candidates);
  if (!nearest.empty()) return fmt::format("; did you mean '{}'?", nearest);
  return fmt::format("; known: {}", fmt::join(candidates, ", "));
}

std::string key_suggestion(std::string_view key, const std::vector<std::string>& known) {
  const size_t dot = key.rfind('.');
  if (dot == key.npos) return suggestion(key, known);
  const std::string section(key.substr(0, dot + 1));
  std::vector<std::string> keys, names;
  for (const std::string& candidate : known) {
    if (!candidate.starts_with(section)) continue;
    keys.push_back(candidate);
    names.push_back(candidate.substr(section.size()));
  }
  if (keys.empty()) return suggestion(key, known);
  const std::string nearest = nearest_name(key.substr(section.size()), names);
  if (!nearest.empty()) return fmt::format("; did you mean '{}{}'?", section, nearest);
  return fmt::format("; known: {}", fmt::join(keys, ", "));
}

}  // namespace weft
