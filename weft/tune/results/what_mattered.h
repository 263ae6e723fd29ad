// What a search learned about its keys, in one sentence.
#pragma once

#include <string>
#include <vector>

#include "weft/tune/results/importance.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

/// Of all trials with results. Error(usage) where there are less than two.
Importances importances_of(const StudySettings& settings, const std::vector<StudyTrial>& trials);

/// "What mattered for validation_accuracy: optimizer.learning_rate, which decides 62 % of its variance, batch (21 %)."
/// Empty where one key alone was searched, or too few trials have results to tell.
std::string what_mattered(const StudySettings& settings, const std::vector<StudyTrial>& trials);

}  // namespace weft::tune
