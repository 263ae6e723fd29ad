// From a study's settings to what a trial trains, and what that will take.
#pragma once

#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/spec/run_spec.h"
#include "weft/tune/study/lineage.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

/// The recipe of the study, with its assignments, as the user has it: what is left open still is. Error(usage).
spec::RunSpec base_spec(const StudySettings& settings, const Library& library);

/// The recipe of a trial, resolved. Error(usage) where the values do not fit together.
spec::RunSpec trial_spec(const StudySettings& settings, const Values& values, const Library& library);

/// Opens the data and makes the plans of the run. Error(usage) where that cannot be, for example for lack of memory.
TrialPlan plan_trial(const spec::RunSpec& spec, const Library& library);

/// The recipe of a trial with what it reached, as a file. Of a copy of other trials it is the recipe that the oldest of
/// them began with, and says when which values changed, and the commands that train it likewise. `remark`: a sentence
/// more, or nothing.
std::string print_best(const StudySettings& settings, const std::vector<Stretch>& lineage, const StudyTrial& trial,
                       const Library& library, const std::string& remark = "");

}  // namespace weft::tune
