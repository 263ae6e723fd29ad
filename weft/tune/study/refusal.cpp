#include "weft/tune/study/refusal.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::tune {

namespace {

/// How many times as much as the bound allows; at most 1 where it holds.
double excess(const Constraint& constraint, const TrialPlan& plan) {
  const double value = std::max(constraint.value(plan), 1.0), bound = std::max(constraint.bound, 1.0);
  return constraint.at_most ? value / bound : bound / value;
}

double worst_excess(const std::vector<Constraint>& constraints, const TrialPlan& plan) {
  double worst = 0;
  for (const Constraint& constraint : constraints) worst = std::max(worst, excess(constraint, plan));
  return worst;
}

}  // namespace

std::string why_refused(const std::vector<Constraint>& constraints, const TrialPlan& plan) {
  std::string reason;
  for (const Constraint& constraint : constraints)
    if (!constraint.holds(plan))
      reason += fmt::format("{}{}, but {}", reason.empty() ? "" : "; ", constraint.in_words(plan), constraint.text);
  return reason;
}

std::string nearest_refused(const std::vector<Constraint>& constraints, const std::vector<StudyTrial>& trials) {
  const StudyTrial* nearest = nullptr;
  for (const StudyTrial& trial : trials)
    if (trial.state == StudyTrial::State::refused &&
        (nearest == nullptr || worst_excess(constraints, trial.plan) < worst_excess(constraints, nearest->plan)))
      nearest = &trial;
  if (nearest == nullptr) return "";
  return fmt::format("the nearest is trial {} with {}; search smaller ranges, or loosen the constraints",
                     nearest->number, why_refused(constraints, nearest->plan));
}

}  // namespace weft::tune
