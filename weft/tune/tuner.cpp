#include "weft/tune/tuner.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/memory.h"
#include "weft/launch/child_process.h"
#include "weft/run/run_directory.h"
#include "weft/spec/recipe.h"
#include "weft/tune/deployed_run.h"
#include "weft/tune/optuna_storage.h"
#include "weft/tune/owner.h"
#include "weft/tune/quiet_room.h"
#include "weft/tune/trial_chooser.h"
#include "weft/tune/trial_plan.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

using State = StudyTrial::State;

constexpr std::chrono::milliseconds kPause{20};
constexpr double kLookSeconds = 0.5;       // between two looks at the metrics of a running trial
constexpr int64_t kRefusedInARow = 100;    // trials that keep to no constraint, before the search gives up
constexpr int kMostKills = 2;              // of one trial, before it counts as failed
constexpr size_t kKeptOutput = 16 * 1024;  // bytes

/// A trial's process.
struct Worker {
  StudyTrial trial;
  std::unique_ptr<launch::ChildProcess> process;
  std::string output = {};
  double looked = 0;
  bool is_stopped = false;  // by the scheduler
};

/// A trial whose process has ended, and that is still to be measured as it is deployed.
struct Trained {
  StudyTrial trial;
  bool is_cut = false;
};

bool is_free(const fs::path& run) {
  std::error_code code;
  if (!fs::exists(run, code)) return true;
  try {
    run::RunDirectory::lock_at(run);
    return true;
  } catch (const Error&) {
    return false;
  }
}

class Tuner {
 public:
  Tuner(const Library& library, Study& study, const TuneLimits& limits, std::string program, const TuneHooks& hooks)
      : library_(library),
        study_(study),
        settings_(study.settings()),
        limits_(limits),
        program_(std::move(program)),
        hooks_(hooks),
        begin_(hooks.clock()),
        owner_(this_process()),
        chooser_(library, study, limits.trials, owner_, hooks.note) {
    for (const std::string& text : settings_.constraints) constraints_.push_back(parse_constraint(text));
    memory_ = memory_limit_bytes();
    if (const fs::path storage = study_.storage(); !storage.empty()) {
      storage_ = std::make_unique<OptunaStorage>(storage, study_);
      for (const StudyTrial& trial : study_.trials()) storage_->write(trial);
    }
    if (needs_latency(settings_.objectives)) room_ = std::make_unique<QuietRoom>(study_.folder());
  }

  TuneOutcome run() {
    while (true) {
      reap();
      measure_trained();
      stop_poor_trials();
      if (is_over()) break;
      fill_workers();
      if (workers_.empty() && trained_.empty() && !held_ && !chooser_.waits_for_others() && !waits_for_quiet_) break;
      tell_status();
      std::this_thread::sleep_for(kPause);
    }
    interrupt_all();
    TuneOutcome outcome{.was_stopped = wants_stop()};
    outcome.best = best_trial(settings_, study_.trials());
    if (outcome.best) write_best(*outcome.best);
    if (outcome.best && !outcome.was_stopped) outcome.summary = finish_best(*outcome.best);
    return outcome;
  }

 private:
  bool wants_stop() const { return hooks_.stop_requested && hooks_.stop_requested(); }
  bool is_over() const { return wants_stop() || (limits_.seconds > 0 && hooks_.clock() - begin_ >= limits_.seconds); }
  void note(const std::string& line) const {
    if (hooks_.note) hooks_.note(line);
  }

  void fill_workers() {
    if (hooks_.clock() < next_look_) return;
    if (room_ && !trained_.empty()) return;  // they are measured as soon as nobody trains
    while (static_cast<int64_t>(workers_.size()) < limits_.workers && !is_over()) {
      waits_for_quiet_ = room_ && !room_->enter();
      if (waits_for_quiet_ || !start_one()) {
        if (room_ && workers_.empty()) room_->leave();
        next_look_ = hooks_.clock() + kLookSeconds;  // or when a trial of this process ends
        return;
      }
      tell_status();
    }
  }

  /// False where there is nothing to start now.
  bool start_one() {
    if (!held_) {
      held_ = study_.change([&](const std::vector<StudyTrial>& trials) { return chooser_.choose(trials); });
      if (!held_) return false;
      if (std::optional<StudyTrial> replaced = chooser_.take_replaced()) {
        replaced->state = State::stopped;
        replaced->reason = fmt::format("gave way to trial {}, a copy of trial {}", held_->number, *held_->parent);
        end(*replaced);
      }
      if (held_->plan.epochs == 0 && !prepare(*held_)) {
        held_.reset();
        return true;  // the next one may do better
      }
    }
    if (!has_room(held_->plan.memory) || !is_free(study_.run_of(held_->number))) return false;
    start(*held_);
    held_.reset();
    return true;
  }

  /// Other trials have their memory already, as planned.
  bool has_room(int64_t bytes) const {
    for (const Worker& worker : workers_) bytes += worker.trial.plan.memory;
    return workers_.empty() || bytes <= memory_;
  }

  /// Plans a new trial and writes its recipe; false where it cannot or must not train, which is recorded.
  bool prepare(StudyTrial& trial) {
    std::string recipe;
    try {
      const spec::RunSpec spec = trial_spec(settings_, trial.values, library_);
      trial.plan = plan_trial(spec, library_);
      recipe = spec::print_recipe(spec, library_);
    } catch (const std::exception& error) {
      trial.state = State::failed;
      trial.reason = error.what();
      end(trial);
      return false;
    }
    for (const Constraint& constraint : constraints_)
      if (!constraint.holds(trial.plan)) return refuse(trial, constraint);
    if (rungs_of(settings_.scheduler, trial.bracket).size() == 1) trial.target = trial.plan.epochs;
    write_atomically(study_.recipe_of(trial.number), recipe);
    refused_in_a_row_ = 0;
    keep(trial);
    return true;
  }

  bool refuse(StudyTrial& trial, const Constraint& constraint) {
    trial.state = State::refused;
    trial.reason = fmt::format("{}, but {}", constraint.in_words(trial.plan), constraint.text);
    const double value = constraint.value(trial.plan);
    const double excess = constraint.at_most ? value / constraint.bound : constraint.bound / std::max(value, 1.0);
    if (refused_in_a_row_ == 0 || excess < nearest_excess_) {
      nearest_excess_ = excess;
      nearest_ = fmt::format("trial {} with {}", trial.number, constraint.in_words(trial.plan));
    }
    end(trial);
    if (++refused_in_a_row_ >= kRefusedInARow)
      fail(ErrorKind::usage,
           "{} trials in a row do not keep to the constraints; the nearest is {}, where {} is wanted; search smaller "
           "ranges, or loosen the constraint",
           refused_in_a_row_, nearest_, constraint.text);
    return false;
  }

  /// Writes a trial of this process.
  void keep(const StudyTrial& trial) {
    study_.update(trial);
    if (!storage_) return;
    if (storage_->count() < trial.number)  // numbers have no gaps there: others may not have written theirs yet
      for (const StudyTrial& other : study_.trials()) storage_->write(other);
    storage_->write(trial);
  }

  void end(StudyTrial& trial) {
    trial.owner.clear();
    keep(trial);
    if (hooks_.trial_ended) hooks_.trial_ended(trial);
  }

  void start(const StudyTrial& trial) {
    const fs::path run = study_.run_of(trial.number);
    std::error_code code;
    const bool goes_on = trial.parent || fs::exists(run / "spec.toml", code);
    if (!goes_on) fs::remove_all(run, code);  // what a process left that died before its run began
    std::vector<std::string> words = {program_, "train"};
    if (goes_on)
      words.insert(words.end(), {"--resume", run.string()});
    else
      words.insert(words.end(), {study_.recipe_of(trial.number).string(), "--run", run.string()});
    if (trial.parent)
      for (const auto& [key, value] : trial.values) words.insert(words.end(), {"--set", key + "=" + shown(value)});
    words.insert(words.end(), {"--pause-after", std::to_string(trial.target), "--quiet"});
    Worker worker{
        trial, std::make_unique<launch::ChildProcess>(words, launch::ChildProcess::Output::kept), {}, hooks_.clock()};
    // Where this process dies, the trial is nobody's only once its own process has ended, too.
    worker.trial.owner = owner_ + " " + identity_of(worker.process->process());
    workers_.push_back(std::move(worker));
    keep(workers_.back().trial);
  }

  void reap() {
    for (size_t index = 0; index < workers_.size();) {
      Worker& worker = workers_[index];
      const bool has_ended = worker.process->has_ended();
      worker.output += worker.process->read();
      if (worker.output.size() > kKeptOutput) worker.output.erase(0, worker.output.size() - kKeptOutput);
      if (!has_ended) {
        ++index;
        continue;
      }
      Worker ended = std::move(worker);
      workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(index));
      record(ended);
    }
  }

  void record(Worker& worker) {
    next_look_ = 0;
    StudyTrial& trial = worker.trial;
    const int code = worker.process->exit_code();
    const bool was_asked = worker.is_stopped || is_ending_;
    // Somebody else may have killed it: it goes on, unless that happens again and again, as where memory is short.
    const bool goes_on = code == 128 + SIGKILL && worker.process->was_killed() && ++kills_[trial.number] <= kMostKills;
    const bool is_interrupted = code == 130 || goes_on || (was_asked && worker.process->was_killed());
    if (room_ && workers_.empty()) room_->leave();
    if (code != 0 && !is_interrupted) {
      const std::string message = last_message(worker.output);
      trial.state = State::failed;
      trial.reason = !message.empty() ? message
                     : worker.process->was_killed()
                         ? fmt::format("signal {} ended it{}", code - 128,
                                       code - 128 == SIGKILL ? ", as the system does where memory runs out" : "")
                         : fmt::format("it ended with code {}", code);
      return end(trial);
    }
    if (is_interrupted && !worker.is_stopped) {
      trial.state = State::interrupted;
      take_results(trial, {});
      return end(trial);
    }
    const bool is_cut = worker.is_stopped && is_interrupted;
    if (needs_deployment(settings_.objectives))
      trained_.push_back({trial, is_cut});
    else
      settle(trial, is_cut, {});
  }

  /// A trial that has trained as far as it was to; `is_cut`: by the scheduler, before.
  void settle(StudyTrial& trial, bool is_cut, const std::optional<Deployed>& deployed) {
    take_results(trial, deployed);
    if (!trial.has_results()) {
      trial.state = State::failed;
      trial.reason = fmt::format("it measured no finite {}", settings_.objectives.front().name);
    } else if (is_cut) {
      trial.state = State::stopped;
    } else {
      // A run may end before: by the recipe's [stop].
      const bool is_at_end = trial.target >= trial.plan.epochs || trial.curve.back().first < trial.target;
      trial.state = is_at_end ? State::finished : State::paused;
    }
    end(trial);
  }

  /// What trained trials are as they are deployed. A latency is measured while no trial trains, here or in another
  /// process.
  void measure_trained() {
    if (trained_.empty() || (room_ && (!workers_.empty() || !room_->enter_alone()))) return;
    while (!trained_.empty() && !wants_stop()) {
      Trained& trained = trained_.front();
      StudyTrial& trial = trained.trial;
      try {
        const std::optional<Deployed> deployed =
            measure_deployed(program_, study_.run_of(trial.number), settings_.threads, room_ != nullptr,
                             [this] { return wants_stop(); });
        if (!deployed) break;
        settle(trial, trained.is_cut, deployed);
      } catch (const Error& error) {
        trial.state = State::failed;
        trial.reason = error.what();
        end(trial);
      }
      trained_.erase(trained_.begin());
    }
    if (room_) room_->leave_alone();
    next_look_ = 0;
  }

  void take_results(StudyTrial& trial, const std::optional<Deployed>& deployed) const {
    const fs::path run = study_.run_of(trial.number);
    trial.curve = measured_curve(run, settings_.objectives.front().name).curve;
    if (const auto values = measure(run, settings_.objectives, trial.plan, deployed)) trial.results = *values;
    const Measured seconds = measured_curve(run, "train_seconds");
    if (!seconds.curve.empty()) trial.seconds = seconds.curve.back().second;
  }

  /// By the scheduler, from what running trials have measured so far.
  void stop_poor_trials() {
    if (settings_.scheduler.name != "median" && settings_.scheduler.name != "curve") return;
    for (Worker& worker : workers_) {
      if (worker.is_stopped || hooks_.clock() - worker.looked < kLookSeconds) continue;
      worker.looked = hooks_.clock();
      worker.trial.curve = measured_curve(study_.run_of(worker.trial.number), settings_.objectives.front().name).curve;
      std::vector<StudyTrial> trials = study_.trials();
      trials[static_cast<size_t>(worker.trial.number)] = worker.trial;
      if (!should_stop(settings_.scheduler, progress_of(settings_, trials), static_cast<size_t>(worker.trial.number)))
        continue;
      worker.is_stopped = true;
      worker.process->send(SIGTERM);
    }
  }

  /// Each trial makes a checkpoint, from which it goes on with the study.
  void interrupt_all() {
    is_ending_ = true;
    for (const Worker& worker : workers_) worker.process->send(SIGTERM);
    while (!workers_.empty()) {
      reap();
      std::this_thread::sleep_for(kPause);
    }
    if (!wants_stop()) measure_trained();
    for (Trained& trained : trained_) {  // their runs are there: resumed, they end at once and are measured
      trained.trial.state = State::interrupted;
      end(trained.trial);
    }
    trained_.clear();
    if (!held_) return;
    held_->state = State::interrupted;
    end(*held_);
    held_.reset();
  }

  void tell_status() {
    if (!hooks_.status) return;
    const double now = hooks_.clock();
    if (now - told_ < 0.1) return;
    told_ = now;
    const std::vector<StudyTrial> trials = study_.trials();
    TuneStatus status{.wanted = limits_.trials, .best = best_trial(settings_, trials)};
    double seconds = 0;
    for (const StudyTrial& trial : trials) {
      status.running += trial.state == State::running;
      status.failed += trial.state == State::failed;
      status.refused += trial.state == State::refused;
      status.done +=
          trial.state != State::running && trial.state != State::refused && trial.state != State::interrupted;
      seconds += trial.seconds;
    }
    if (limits_.seconds > 0) status.seconds_left = std::max(0.0, limits_.seconds - (now - begin_));
    if (limits_.trials > 0 && status.done > 0) {
      const double left = static_cast<double>(std::max<int64_t>(0, limits_.trials - status.done)) * seconds /
                          static_cast<double>(status.done * limits_.workers);
      status.seconds_left = std::min(left, status.seconds_left.value_or(left));
    }
    hooks_.status(status);
  }

  void write_best(const StudyTrial& best) {
    const bool is_one = settings_.objectives.size() == 1;
    for (const StudyTrial& trial : is_one ? std::vector{best} : best_trials(settings_, study_.trials())) {
      const fs::path file =
          trial.number == best.number ? study_.best() : study_.folder() / fmt::format("best-{:04}.toml", trial.number);
      write_atomically(file, print_best(settings_, trial, library_));
    }
  }

  /// The test data are measured now, for this trial alone.
  std::optional<run::Summary> finish_best(const StudyTrial& best) const {
    const fs::path run = study_.run_of(best.number);
    std::error_code code;
    if (best.state != State::finished) return std::nullopt;
    if (!fs::exists(run / "summary.json", code)) {
      launch::ChildProcess process({program_, "train", "--resume", run.string(), "--quiet", "--json"},
                                   launch::ChildProcess::Output::kept);
      std::string output;
      while (!process.has_ended() && !wants_stop()) output += process.wait(std::chrono::milliseconds(100));
      if (!process.has_ended()) return std::nullopt;
      output += process.read();
      if (process.exit_code() != 0) note("the test data were not measured: " + last_message(output));
    }
    if (!fs::exists(run / "summary.json", code)) return std::nullopt;
    return run::parse_summary(read_text(run / "summary.json"));
  }

  const Library& library_;
  Study& study_;
  const StudySettings& settings_;
  const TuneLimits limits_;
  const std::string program_;
  const TuneHooks& hooks_;
  const double begin_;
  const std::string owner_;
  TrialChooser chooser_;
  std::vector<Constraint> constraints_;
  int64_t memory_ = 0;  // bytes, of all trials together
  std::vector<Worker> workers_;
  std::vector<Trained> trained_;            // not yet measured
  std::unique_ptr<OptunaStorage> storage_;  // null: nobody asked for it
  std::unique_ptr<QuietRoom> room_;         // where latencies are measured
  bool waits_for_quiet_ = false;            // another process measures
  std::map<int64_t, int> kills_;            // of trials by others, by their numbers
  std::optional<StudyTrial> held_;          // claimed, and waits for memory
  bool is_ending_ = false;
  int64_t refused_in_a_row_ = 0;
  double nearest_excess_ = 0, told_ = -1, next_look_ = 0;
  std::string nearest_;
};

}  // namespace

TuneOutcome run_study(const Library& library, Study& study, const TuneLimits& limits, const std::string& program,
                      const TuneHooks& hooks) {
  return Tuner(library, study, limits, program, hooks).run();
}

}  // namespace weft::tune
