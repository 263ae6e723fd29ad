// From what a user asks for to the settings of a study, checked before anything is written or trained.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/tune/ranges/range_text.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

struct StudyRequest {
  std::string recipe = {};            // TOML
  std::vector<std::string> set = {};  // KEY=VALUE
  std::vector<RangeText> ranges = {};
  std::vector<std::string> proposals =
      {};                      // names of proposals (ranges/proposed_search.h); without them and ranges: training
  std::string objective = {};  // empty: what the task is decided by, on the validation part
  std::vector<std::string> constraints = {};
  std::string searcher = {};  // empty: auto; nsga2 for several objectives, sobol for a population
  std::string scheduler = "none";
  int64_t least_epochs = 1, reduction = 3;  // of schedulers
  std::optional<double> percentile = {};    // of the scheduler of that name; nullopt: its own
  int64_t seed = 1, threads = 1;
  int64_t in_order = 0;  // as StudySettings has it
};

/// Sets aside a tenth of the training data for validation, and says so to `note`, where the recipe has no such part and
/// no assignment says that there is to be none.
/// Error(usage) for all that cannot be, with the next step.
StudySettings study_settings(const Library& library, const StudyRequest& request,
                             const std::function<void(const std::string&)>& note);

}  // namespace weft::tune
