#include "weft/tune/study/trial_records.h"

#include <fmt/format.h>

#include <utility>

namespace weft::tune {

using State = StudyTrial::State;

TrialRecords::TrialRecords(Study& study, std::function<void(const StudyTrial&)> trial_ended)
    : study_(study), trial_ended_(std::move(trial_ended)) {
  const std::filesystem::path storage = study_.storage();
  if (storage.empty()) return;
  storage_ = std::make_unique<OptunaStorage>(storage, study_);
  for (const StudyTrial& trial : study_.trials()) storage_->write(trial);
}

void TrialRecords::keep(const StudyTrial& trial) {
  study_.update(trial);
  if (!storage_) return;
  if (storage_->count() < trial.number)  // numbers have no gaps there: others may not have written theirs yet
    for (const StudyTrial& other : study_.trials()) storage_->write(other);
  storage_->write(trial);
}

void TrialRecords::end(StudyTrial& trial) {
  trial.owner.clear();
  keep(trial);
  if (trial_ended_) trial_ended_(trial);
}

void TrialRecords::end_failed(StudyTrial& trial, std::string reason) {
  trial.state = State::failed;
  trial.reason = std::move(reason);
  end(trial);
}

void TrialRecords::end_interrupted(StudyTrial& trial) {
  trial.state = State::interrupted;
  end(trial);
}

void TrialRecords::settle(StudyTrial& trial, const std::optional<Deployed>& deployed) {
  take_results(trial, deployed);
  if (!trial.has_results())
    return end_failed(trial, fmt::format("it measured no finite {}", study_.settings().objectives.front().name));
  // A run may end before its target: by the recipe's [stop].
  const bool is_at_end = trial.target >= trial.plan.epochs || trial.curve.back().first < trial.target;
  trial.state = trial.is_cut ? State::stopped : is_at_end ? State::finished : State::paused;
  end(trial);
}

void TrialRecords::take_curve(StudyTrial& trial) const {
  trial.curve = measured_curve(metrics_of(trial), study_.settings().objectives.front().name).curve;
}

run::MetricsHistory TrialRecords::metrics_of(const StudyTrial& trial) const {
  return run::read_metrics(study_.run_of(trial.number) / "metrics.jsonl");
}

void TrialRecords::take_results(StudyTrial& trial, const std::optional<Deployed>& deployed) const {
  const run::MetricsHistory history = metrics_of(trial);
  const auto& objectives = study_.settings().objectives;
  trial.curve = measured_curve(history, objectives.front().name, trial.begun).curve;
  if (const auto values = measure(history, objectives, trial.plan, deployed, trial.begun)) trial.results = *values;
  trial.seconds = measured_seconds(history, trial.begun);
}

}  // namespace weft::tune
