// What trials are told that do not keep to the constraints of their study, and the nearest of them.
#pragma once

#include <string>
#include <vector>

#include "weft/tune/study/objective.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

/// "parameters 556, but parameters <= 10", of each constraint that the plan breaks; empty where it keeps to all.
std::string why_refused(const std::vector<Constraint>& constraints, const TrialPlan& plan);

/// Of the refused trials the one whose worst excess is the least: "the nearest is trial 3 with parameters 556, but
/// parameters <= 10", and what may be done. Empty where none was refused.
std::string nearest_refused(const std::vector<Constraint>& constraints, const std::vector<StudyTrial>& trials);

}  // namespace weft::tune
