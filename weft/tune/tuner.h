// Works on a study: starts trials as processes of this program or at workers elsewhere, records what came of them,
// and lets those go on that the scheduler chooses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "weft/library/library.h"
#include "weft/run/summary.h"
#include "weft/tune/results/tune_status.h"
#include "weft/tune/study/study.h"
#include "weft/tune/training/worker_server.h"

namespace weft::tune {

struct TuneLimits {
  int64_t trials = 0;   // of the study in all, without those that were refused; 0: no limit
  double seconds = 0;   // of this process; 0: no limit
  int64_t workers = 1;  // trials at a time on this host, at most places_here(); 0: all train elsewhere
};

/// Trials that may train at a time on this host, by all processes that work on the study together: the cores over the
/// threads of a trial, at least one.
int64_t places_here(const StudySettings& settings);

struct TuneHooks {
  std::function<void(const TuneStatus&)> status = {};       // called often
  std::function<void(const StudyTrial&)> trial_ended = {};  // each time that a trial stops
  std::function<void(const std::string&)> note = {};        // a line for the user
  std::function<bool()> stop_requested = {};
  std::function<double()> clock;  // seconds, monotonic
};

struct TuneOutcome {
  bool was_stopped = false;  // by request: some trials are interrupted, and go on with the study
  std::optional<StudyTrial> best = {};
  std::optional<run::Summary> summary =
      {};  // of the best one, with its test data measured, where it has trained to its end
};

/// `program` is the path of this program. A trial that fails is recorded with its reason, and the study goes on.
/// `server`, where there is one, has further workers on other hosts; what they train is in the run directories here
/// once it has ended. Workers are told when the search ends. Error(usage) where no trial keeps to the constraints, with
/// the nearest. Error(io), Error(data) of the study's files.
TuneOutcome run_study(const Library& library, Study& study, const TuneLimits& limits, const std::string& program,
                      const TuneHooks& hooks, WorkerServer* server = nullptr);

}  // namespace weft::tune
