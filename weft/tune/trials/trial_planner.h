// Plans trials for a tuner: what one takes, where it can be ahead of its turn, and its recipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weft/library/library.h"
#include "weft/tune/trials/trial_plan.h"

namespace weft::tune {

/// Of a point, before it is a trial.
struct PlannedTrial {
  int64_t number = 0;  // that it would have
  Values values;
  TrialPlan plan;
  std::string recipe;
};

class TrialPlanner {
 public:
  /// Keeps data open that lie in memory, since workers wait for the plan of the next trial.
  TrialPlanner(const Library& library, const StudySettings& settings);

  /// Of the trial with this number: as it was guessed, where the guess was right. Error where it cannot be planned.
  PlannedTrial plan(int64_t number, const Values& values);

  /// Of a trial that was planned before.
  std::string recipe(const Values& values) const;

  /// Whether a guess at the next trial is wanted. Guesses about a searcher that learns from every result are wrong:
  /// after the first wrong one there are no more.
  bool wants_guess() const { return guesses_ && !ahead_; }
  /// Plans a trial that would be next by what is known now. What cannot be planned says so when it is its turn.
  void guess(int64_t number, const Values& values);

 private:
  PlannedTrial planned_by(int64_t number, const Values& values) const;

  Library library_;
  const StudySettings& settings_;
  std::optional<PlannedTrial> ahead_;
  bool guesses_ = true;
};

}  // namespace weft::tune
