// The pictures of a search: how the best grew, the learning curves of the best trials, what each key did, and the
// trade between objectives.
#pragma once

#include <vector>

#include "weft/plot/figure.h"
#include "weft/tune/study/study.h"

namespace weft::cli {

/// How the best grew, the curves of the best trials and, with several objectives, the front. Error(usage) where no
/// trial has a result yet.
plot::Figure study_figure(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials);

/// The first objective against each of the others, a panel each: all trials, and those that no other one beats in all
/// objectives. Without panels where there is one objective.
plot::Figure front_figure(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials);

/// The first objective over the values of one key: numbers at their places, on a logarithmic axis where the key is
/// searched on one, and other values beside each other in the order of their choices.
plot::Figure slice_figure(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials,
                          const tune::Dimension& dimension);

/// A panel for each key.
plot::Figure slices_figure(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials);

}  // namespace weft::cli
