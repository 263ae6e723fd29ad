// What a search leaves behind: the best recipe as a file, and the best run with its test data measured.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "weft/library/library.h"
#include "weft/run/summary.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

/// best.toml; with several objectives also best-NNNN.toml for each other trial on the front. Those of trials that were
/// on an earlier front are removed.
void write_best(Study& study, const StudyTrial& best, const Library& library);

/// The test data are measured now, for this trial alone, where it has trained to its end; else `note` says that they
/// are not, and how to go on: also where its run directory is gone. `program`: the path of this program.
std::optional<run::Summary> measure_winner(Study& study, const StudyTrial& best, const std::string& program,
                                           const std::function<bool()>& stop_requested,
                                           const std::function<void(const std::string&)>& note);

}  // namespace weft::tune
