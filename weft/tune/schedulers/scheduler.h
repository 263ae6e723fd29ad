// Which trial trains next, and how far: schedulers give many trials a little training, and more of it to those that do
// well. They are functions of what was measured so far, and keep nothing themselves.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft::tune {

struct SchedulerOptions {
  /// none: every trial trains to its end | median: likewise, unless it does worse than half of the others |
  /// percentile: likewise, unless it does worse than the best `percentile` % of the others did |
  /// curve: likewise, unless its learning curve will hardly come near the best (learning_curve.h) |
  /// halving: of all trials after `least` the best go on, of these again, ... | hyperband: likewise in several groups
  /// that begin with different amounts of training | asha: like halving, without waiting for all trials of a round |
  /// population: `trials` members train to their end; after each `least` the worst become copies of the best
  /// (population.h)
  std::string name = "none";
  int64_t least = 1;      // training of a first round, such as epochs
  int64_t most = 1;       // of a trial that trains to its end
  int64_t reduction = 3;  // one of so many goes on, with so many times the training
  int64_t trials = 0;     // in all, or members of a population; 0: no end
  double percentile = 25;
};

/// The names for SchedulerOptions::name.
const std::vector<std::string>& scheduler_names();

/// Error(usage) where the options do not fit together.
void check_scheduler(const SchedulerOptions& options);

/// What a scheduler knows of a trial.
struct TrialProgress {
  enum class State {
    running,  // towards `target`
    paused,   // has reached it, and may go on
    ended,    // failed, or was stopped, or trained to its end
  };
  State state = State::running;
  int64_t bracket = 0;  // as the scheduler said when it began
  int64_t target = 0;
  int64_t begun = 0;                                   // the training that it has from the trial that it is a copy of
  bool is_held = false;                                // it is being copied: it must not go on
  bool has_finished = false;                           // it has trained to its end
  std::vector<std::pair<int64_t, double>> curve = {};  // training, and the loss then: the lower the better

  /// The lowest loss up to this training; infinity where nothing was measured.
  double loss_at(int64_t resource) const;
};

struct Job {
  enum class Kind { start, go_on, copy, wait, none };
  Kind kind = Kind::none;  // none: there is nothing left to do
  size_t trial = 0;        // that goes on, or that a new one begins as a copy of
  int64_t bracket = 0;     // of a new one
  int64_t target = 0;      // the training after which it pauses
  int64_t begun = 0;       // of a copy: what its origin has trained
};

/// The next job for a worker that is free. Trials in the order in which they began. Once all have begun, and none of
/// them comes to its end, the best of those that wait does.
Job next_job(const SchedulerOptions& options, const std::vector<TrialProgress>& trials);

/// Whether the scheduler ends trials while they run: it asks should_stop().
bool ends_trials_early(const SchedulerOptions& options);

/// Whether a running trial should end now: by the median rule of Golovin et al., "Google Vizier", KDD 2017, likewise
/// with another percentile, or since with a probability of 90 % it will not reach the best that others ended with.
bool should_stop(const SchedulerOptions& options, const std::vector<TrialProgress>& trials, size_t trial);

/// The amounts of training at which the trials of a bracket pause, the last one `most`.
std::vector<int64_t> rungs_of(const SchedulerOptions& options, int64_t bracket);
/// How many trials a bracket begins with; 0: no end.
int64_t bracket_size(const SchedulerOptions& options, int64_t bracket);

}  // namespace weft::tune
