#include "weft/tune/results/tune_status.h"

#include <algorithm>

namespace weft::tune {

namespace {

using State = StudyTrial::State;

bool is_on_its_way(const StudyTrial& trial) {
  return trial.state == State::running || trial.state == State::interrupted;
}

/// Epochs that the trial has trained itself.
int64_t trained_epochs(const StudyTrial& trial) {
  return trial.curve.empty() ? 0 : trial.curve.back().first - trial.begun;
}

/// By the plan, for so many epochs.
double predicted_seconds(const StudyTrial& trial, int64_t epochs) {
  if (trial.plan.epochs <= 0) return 0;
  return trial.plan.seconds * static_cast<double>(std::max<int64_t>(0, epochs)) /
         static_cast<double>(trial.plan.epochs);
}

/// What trials took, over what was predicted for as much training; 0: nobody knows.
double measured_over_predicted(const std::vector<StudyTrial>& trials) {
  double measured = 0, predicted = 0;
  for (const StudyTrial& trial : trials) {
    const double expected = predicted_seconds(trial, trained_epochs(trial));
    if (trial.seconds <= 0 || expected <= 0) continue;
    measured += trial.seconds;
    predicted += expected;
  }
  return predicted > 0 ? measured / predicted : 0;
}

}  // namespace

TuneStatus status_of(const StudySettings& settings, const std::vector<StudyTrial>& trials, int64_t wanted,
                     int64_t places, std::optional<double> seconds_left) {
  TuneStatus status{.wanted = wanted, .best = best_trial(settings, trials), .seconds_left = seconds_left};
  const double scale = measured_over_predicted(trials);
  double taken = 0, left = 0;
  int64_t begun = 0, ended = 0;
  for (const StudyTrial& trial : trials) {
    status.running += trial.state == State::running;
    status.failed += trial.state == State::failed;
    status.refused += trial.state == State::refused;
    if (trial.state == State::refused) continue;
    ++begun;
    taken += trial.seconds;
    if (is_on_its_way(trial))
      left += scale * predicted_seconds(trial, trial.target - trial.begun - trained_epochs(trial));
    else
      ++ended;
  }
  status.done = ended;
  if (wanted > 0 && ended > 0) {
    const double mean = taken / static_cast<double>(ended);
    const auto further = static_cast<double>(std::max<int64_t>(0, wanted - begun));
    // Without predictions those that run take as long as others, of which they have half.
    if (scale == 0) left = mean * static_cast<double>(begun - ended) / 2;
    left = (left + further * mean) / static_cast<double>(std::max<int64_t>(1, places));
    status.seconds_left = std::min(left, status.seconds_left.value_or(left));
  }
  return status;
}

}  // namespace weft::tune
