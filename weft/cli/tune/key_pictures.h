// Pictures of what the searched keys did: each trial across all keys, the mean over two of them, and their importance.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/base/table.h"
#include "weft/tune/results/importance.h"
#include "weft/tune/study/study.h"

namespace weft::cli {

/// SVG. A line for each trial with a result, the best ones dark, over an axis for each key and one for the objective.
/// Error(usage) where no trial has a result.
std::string parallel_picture(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials);

/// SVG. What the forest predicts over two keys, in the mean over the others, with the trials. Error(usage) where there
/// are less than two results.
std::string contour_picture(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials,
                            std::pair<size_t, size_t> keys);

/// SVG. Bars for each key and for the pairs that matter most.
std::string importance_picture(const tune::StudySettings& settings, const tune::Importances& importances);
/// The same as rows, the most important key first.
Table importance_table(const tune::StudySettings& settings, const tune::Importances& importances);
std::string importance_json(const tune::StudySettings& settings, const tune::Importances& importances);

/// "optimizer.learning_rate,batch" as dimensions; of an empty text, the pair that decides the most. Error(usage) where
/// the study searches no such keys, with the nearest name, or only one.
std::pair<size_t, size_t> pair_of_keys(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials,
                                       const std::string& text);

}  // namespace weft::cli
