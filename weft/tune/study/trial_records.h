// Writes down what the trials of a tuner have come to: in the study, and where Optuna's tools read it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "weft/run/metrics_history.h"
#include "weft/tune/study/deployed_run.h"
#include "weft/tune/study/objective.h"
#include "weft/tune/study/optuna_storage.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

class TrialRecords {
 public:
  /// `trial_ended`, which may be empty, is told of each trial that stops. Error(io) of the storage.
  TrialRecords(Study& study, std::function<void(const StudyTrial&)> trial_ended);

  /// Of a trial of this process, whatever its state.
  void keep(const StudyTrial& trial);
  /// Of one that stops and is nobody's from now on.
  void end(StudyTrial& trial);
  void end_failed(StudyTrial& trial, std::string reason);
  /// It goes on with the study, from its last checkpoint.
  void end_interrupted(StudyTrial& trial);
  /// Of one that has trained as far as it was to. `deployed`: measured where the objectives want it.
  void settle(StudyTrial& trial, const std::optional<Deployed>& deployed);
  /// What it has measured so far: all of it, or the curve alone.
  void take_results(StudyTrial& trial, const std::optional<Deployed>& deployed = {}) const;
  void take_curve(StudyTrial& trial) const;
  /// Of what its run has recorded so far: more once it has measured something more.
  uintmax_t metrics_bytes(const StudyTrial& trial) const;

 private:
  std::filesystem::path metrics_file(const StudyTrial& trial) const;
  run::MetricsHistory metrics_of(const StudyTrial& trial) const;

  Study& study_;
  const std::function<void(const StudyTrial&)> trial_ended_;
  std::unique_ptr<OptunaStorage> storage_;  // null: nobody asked for it
};

}  // namespace weft::tune
