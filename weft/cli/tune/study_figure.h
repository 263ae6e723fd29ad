// The picture of a search: how the best grew, and the learning curves of the best trials.
#pragma once

#include <vector>

#include "weft/plot/figure.h"
#include "weft/tune/study.h"

namespace weft::cli {

/// Error(usage) where no trial has a result yet.
plot::Figure study_figure(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials);

}  // namespace weft::cli
