#include "weft/tune/study/trial_records.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>
#include <vector>

#include "weft/base/files.h"
#include "weft/run/checkpoint/manifest.h"
#include "weft/run/checkpoint/store.h"

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

namespace {

/// Whether the run has come to its end before its last epoch: by the recipe's [stop], max_steps or max_time. Where that
/// is the epoch at which it was to pause, nothing but its checkpoint says so.
bool has_ended_early(const std::filesystem::path& run) {
  const std::vector<std::filesystem::path> checkpoints = run::CheckpointStore(run / "checkpoints", 1).list();
  if (checkpoints.empty()) return false;
  const std::filesystem::path file = checkpoints.front() / "manifest.json";
  return !run::parse_manifest(read_text(file), file.string()).position.ended.empty();
}

}  // namespace

void TrialRecords::settle(StudyTrial& trial, const std::optional<Deployed>& deployed) {
  take_results(trial, deployed);
  if (!trial.has_results())
    return end_failed(trial, fmt::format("it measured no finite {}", study_.settings().objectives.front().name));
  const bool is_at_end = trial.target >= trial.plan.epochs || has_ended_early(study_.run_of(trial.number));
  trial.state = trial.is_cut ? State::stopped : is_at_end ? State::finished : State::paused;
  end(trial);
}

void TrialRecords::take_curve(StudyTrial& trial) const {
  trial.curve = measured_curve(metrics_of(trial), study_.settings().objectives.front().name).curve;
}

uintmax_t TrialRecords::metrics_bytes(const StudyTrial& trial) const {
  std::error_code code;
  const uintmax_t bytes = std::filesystem::file_size(metrics_file(trial), code);
  return code ? 0 : bytes;
}

std::filesystem::path TrialRecords::metrics_file(const StudyTrial& trial) const {
  return study_.run_of(trial.number) / "metrics.jsonl";
}

run::MetricsHistory TrialRecords::metrics_of(const StudyTrial& trial) const {
  return run::read_metrics(metrics_file(trial));
}

void TrialRecords::take_results(StudyTrial& trial, const std::optional<Deployed>& deployed) const {
  const run::MetricsHistory history = metrics_of(trial);
  const auto& objectives = study_.settings().objectives;
  trial.curve = measured_curve(history, objectives.front().name, trial.begun).curve;
  if (const auto values = measure(history, objectives, trial.plan, deployed, trial.begun)) trial.results = *values;
  trial.seconds = measured_seconds(history, trial.begun);
}

}  // namespace weft::tune
