#include "weft/tune/study/lineage.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::tune {

std::vector<Stretch> lineage_of(const std::vector<StudyTrial>& trials, const StudyTrial& trial) {
  std::vector<Stretch> stretches;
  int64_t end = trial.curve.empty() ? trial.begun : trial.curve.back().first;
  for (const StudyTrial* at = &trial;; at = &trials[static_cast<size_t>(*at->parent)]) {
    // A copy that gave way itself before it had trained has no part in it.
    if (at->begun < end || at == &trial) stretches.push_back({at->number, at->begun, end, at->values});
    if (!at->parent) break;
    check(*at->parent >= 0 && *at->parent < at->number, "a copy is younger than its origin");
    end = at->begun;
  }
  std::reverse(stretches.begin(), stretches.end());
  return stretches;
}

std::string epochs_in_words(const Stretch& stretch) {
  if (stretch.begin + 1 == stretch.end) return fmt::format("epoch {}", stretch.end);
  return fmt::format("epochs {} to {}", stretch.begin + 1, stretch.end);
}

}  // namespace weft::tune
