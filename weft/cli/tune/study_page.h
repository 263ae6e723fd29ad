// A study as one HTML file, for `weft tune show -o report.html`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/run/summary.h"
#include "weft/tune/study/study.h"

namespace weft::cli {

/// `name`: of the study. `best`: of the run of the best trial, where its test data have been measured. Error(usage)
/// where no trial has a result yet.
std::string study_page(const Library& library, const std::string& name, const tune::StudySettings& settings,
                       const std::vector<tune::StudyTrial>& trials, const std::optional<run::Summary>& best);

}  // namespace weft::cli
