#include "weft/tune/trials/trial_planner.h"

#include <exception>
#include <utility>

#include "weft/data/kept_datasets.h"
#include "weft/spec/recipe.h"

namespace weft::tune {

TrialPlanner::TrialPlanner(const Library& library, const StudySettings& settings)
    : library_(library), settings_(settings) {
  library_.data = data::keep_datasets(library.data);
}

PlannedTrial TrialPlanner::plan(int64_t number, const Values& values) {
  std::optional<PlannedTrial> guessed = std::exchange(ahead_, std::nullopt);
  if (guessed && guessed->values == values) {
    guessed->number = number;
    return *std::move(guessed);
  }
  if (guessed && guessed->number == number) guesses_ = false;
  return planned_by(number, values);
}

std::string TrialPlanner::recipe(const Values& values) const {
  return spec::print_recipe(trial_spec(settings_, values, library_), library_);
}

void TrialPlanner::guess(int64_t number, const Values& values) {
  try {
    ahead_ = planned_by(number, values);
  } catch (const std::exception&) {
    ahead_.reset();
  }
}

PlannedTrial TrialPlanner::planned_by(int64_t number, const Values& values) const {
  const spec::RunSpec spec = trial_spec(settings_, values, library_);
  return {.number = number,
          .values = values,
          .plan = plan_trial(spec, library_),
          .recipe = spec::print_recipe(spec, library_)};
}

}  // namespace weft::tune
