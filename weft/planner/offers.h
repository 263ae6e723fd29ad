// Offers of what cluster files describe, as tables and as a picture.
#pragma once

#include <string>

#include "weft/library/library.h"
#include "weft/planner/search.h"
#include "weft/predict/planned_run.h"
#include "weft/search/auto_strategy.h"

namespace weft::planner {

/// Of plans for the strategy of each open candidate, of which there may be hundreds.
inline constexpr search::Limits kLimitsOfChoices{.plans = 4, .most_plans = 12};

/// Plans candidates. Keeps references to both.
Evaluator evaluator_of(const Library& library, const predict::PlannedModel& model, const predict::Place& here);

/// The offers of the front and those next to it, what was chosen and why, what was refused.
std::string describe(const Found& found, const Goal& goal);
nlohmann::ordered_json to_json(const Found& found, const Goal& goal);
/// Hours against cost: a line for each cluster from few hosts to many, and the front.
std::string draw_svg(const Found& found, const std::string& title);

}  // namespace weft::planner
