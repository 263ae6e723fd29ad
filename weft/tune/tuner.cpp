#include "weft/tune/tuner.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/memory.h"
#include "weft/run/run_directory.h"
#include "weft/tune/quiet_room.h"
#include "weft/tune/results/winner.h"
#include "weft/tune/study/copied_run.h"
#include "weft/tune/study/deployed_run.h"
#include "weft/tune/study/owner.h"
#include "weft/tune/study/refusal.h"
#include "weft/tune/study/trial_recipes.h"
#include "weft/tune/study/trial_records.h"
#include "weft/tune/trials/study_data.h"
#include "weft/tune/trials/trial_chooser.h"
#include "weft/tune/trials/trial_planner.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

using State = StudyTrial::State;

constexpr std::chrono::milliseconds kPause{5};
constexpr double kRetrySeconds = 0.5;      // until a search that found nothing to start looks again
constexpr double kLookSeconds = 0.05;      // at least between two looks at the metrics of a running trial,
constexpr double kLookRatio = 20;          // and so many times as long as the last look took
constexpr int64_t kRefusedInARow = 100;    // trials that keep to no constraint, before the search gives up,
constexpr int64_t kFailedAlike = 10;       // and those that fail for the same reason
constexpr int kLooksAtARun = 4;            // that another process trains in, before the user is told
constexpr int kMostKills = 2;              // of one trial, before it counts as failed
constexpr int kMostLosses = 5;             // likewise of its workers
constexpr size_t kKeptOutput = 16 * 1024;  // bytes

/// A trial that trains.
struct Worker {
  StudyTrial trial;
  std::unique_ptr<Training> training;
  std::string output = {};
  double next_look = 0;      // at its metrics,
  uintmax_t seen_bytes = 0;  // of which there were so many
  bool is_here = true;       // on this host
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
  Tuner(const Library& library, Study& study, const TuneLimits& limits, std::string program, const TuneHooks& hooks,
        WorkerServer* server)
      : library_(library),
        study_(study),
        settings_(study.settings()),
        limits_(limits),
        program_(std::move(program)),
        trainers_(program_),
        hooks_(hooks),
        server_(server),
        begin_(hooks.clock()),
        owner_(this_process()),
        chooser_(library, study, limits.trials, owner_, hooks.note),
        planner_(library, settings_),
        recipes_(study_),
        records_(study_, hooks.trial_ended),
        places_(places_here(settings_)) {
    for (const std::string& text : settings_.constraints) constraints_.push_back(parse_constraint(text));
    memory_ = memory_limit_bytes();
    if (needs_latency(settings_.objectives)) room_ = std::make_unique<QuietRoom>(study_.folder());
  }

  TuneOutcome run() {
    while (true) {
      reap();
      measure_trained();
      stop_poor_trials();
      if (is_over()) break;
      fill_workers();
      sync();
      plan_ahead();
      if (workers_.empty() && trained_.empty() && nothing_left_) break;
      tell_status();
      tell_of_workers();
      wait_for_news();
    }
    sync();
    interrupt_all();
    sync();
    trainers_.dismiss_idle();
    tell_of_workers();
    TuneOutcome outcome{.was_stopped = wants_stop()};
    outcome.best = best_trial(settings_, study_.trials());
    require_any_allowed(study_.trials());
    if (server_ != nullptr) server_->end(outcome.was_stopped ? "the tuner was stopped" : "the search has ended");
    if (outcome.best) write_best(study_, *outcome.best, library_);
    if (outcome.best && !outcome.was_stopped)
      outcome.summary = measure_winner(study_, *outcome.best, program_, hooks_.stop_requested, hooks_.note);
    return outcome;
  }

 private:
  bool wants_stop() const { return hooks_.stop_requested && hooks_.stop_requested(); }
  bool is_over() const { return wants_stop() || (limits_.seconds > 0 && hooks_.clock() - begin_ >= limits_.seconds); }
  void note(const std::string& line) const {
    if (hooks_.note) hooks_.note(line);
  }

  void tell_of_workers() const {
    if (server_ == nullptr) return;
    for (const std::string& line : server_->notes()) note(printable(line));
  }

  bool is_free_here() const {
    const auto here = std::count_if(workers_.begin(), workers_.end(), [](const Worker& one) { return one.is_here; });
    return here < limits_.workers;
  }
  bool has_free_place() const { return is_free_here() || (server_ != nullptr && server_->free_places() > 0); }

  /// Until a trial of this host may have ended, or some milliseconds.
  void wait_for_news() const {
    std::vector<pollfd> news;
    for (const Worker& worker : workers_)
      if (const int file = worker.training->news(); file >= 0)
        news.push_back({.fd = file, .events = POLLIN, .revents = 0});
    poll(news.data(), news.size(), kPause.count());
  }

  void fill_workers() {
    if (hooks_.clock() < next_look_) return;
    if (room_ && !trained_.empty()) return;  // they are measured as soon as nobody trains
    nothing_left_ = false;
    // Without any place, too, a trial is chosen: whether there is one to wait for must be known.
    while ((has_free_place() || (workers_.empty() && !held_)) && !is_over()) {
      const bool waits_for_quiet = room_ && !room_->enter();
      if (waits_for_quiet || !start_one()) {
        nothing_left_ = !waits_for_quiet && !held_ && !chooser_.waits_for_others();
        if (room_ && workers_.empty()) room_->leave();
        next_look_ = hooks_.clock() + kRetrySeconds;  // or when a trial of this process ends
        return;
      }
      sync();  // behind the start of a trial, which need not wait for the disk
      tell_status();
    }
  }

  /// From then on trials that have ended outlive a power cut, with their recipes.
  void sync() {
    recipes_.sync();
    study_.sync();
  }

  /// False where there is nothing to start now.
  bool start_one() {
    if (!held_) {
      held_ = study_.change([&](const std::vector<StudyTrial>& trials) { return chooser_.choose(trials); });
      if (!held_) return false;
      if (held_->parent) end_replaced(*held_);
      if (held_->plan.epochs == 0 && !prepare(*held_)) {
        held_.reset();
        return true;  // the next one may do better
      }
      std::error_code code;
      const fs::path run = study_.run_of(held_->number);
      if (held_->parent && !fs::exists(run, code)) copy_run(study_.run_of(*held_->parent), run);
    }
    if (!is_free(study_.run_of(held_->number))) {
      tell_of_wait(*held_);
      return false;
    }
    looks_ = 0;
    if (held_->is_cut) {  // its process has ended, and this study before it had recorded that
      has_trained(*held_);
      held_.reset();
      return true;
    }
    const bool has_recipe = held_->parent || restore_recipe(*held_);
    if (has_recipe && !start(*held_)) return false;
    held_.reset();
    return true;
  }

  void tell_of_wait(const StudyTrial& trial) {
    if (++looks_ == kLooksAtARun)
      note(fmt::format("trial {} waits: another process trains in '{}'", trial.number,
                       study_.run_of(trial.number).string()));
  }

  /// Records it. Error(data) where so many in a row have failed alike: the reason lies not in their values.
  void end_failed(StudyTrial& trial, const std::string& reason) {
    records_.end_failed(trial, reason);
    alike_ = reason == last_reason_ ? alike_ + 1 : 1;
    last_reason_ = reason;
    if (alike_ >= kFailedAlike)
      fail(ErrorKind::data, "{} trials in a row failed alike: {}; mend that, then go on with --resume {} --trials N",
           alike_, reason, study_.folder().string());
  }

  /// Of the member that a copy takes the place of, unless a process that died did so already.
  void end_replaced(const StudyTrial& copy) {
    std::optional<StudyTrial> replaced;
    for (const StudyTrial& trial : study_.trials())
      if (trial.bracket == copy.bracket && trial.number < copy.number) replaced = trial;
    if (!replaced || replaced->state != State::paused) return;
    replaced->state = State::stopped;
    replaced->reason = fmt::format("gave way to trial {}, a copy of trial {}", copy.number, *copy.parent);
    records_.end(*replaced);
  }

  /// A place of this host for a trial of this process, where its cores and its memory, as planned, have room beside all
  /// other trials of the study: those of other tuners, too.
  bool take_place(const StudyTrial& trial) {
    return study_
        .change([&](const std::vector<StudyTrial>& trials) -> std::optional<StudyTrial> {
          int64_t count = 0, bytes = 0;
          for (const StudyTrial& other : trials)
            if (other.number != trial.number && other.state == State::running && is_here(other.owner)) {
              ++count;
              bytes += other.plan.memory;
            }
          if (count >= places_ || (count > 0 && bytes + trial.plan.memory > memory_)) return std::nullopt;
          StudyTrial placed = trial;
          placed.owner = owner_here(owner_);
          return placed;
        })
        .has_value();
  }

  /// Plans a new trial and writes its recipe; false where it cannot or must not train, which is recorded.
  bool prepare(StudyTrial& trial) {
    std::string recipe;
    try {
      PlannedTrial planned = planner_.plan(trial.number, trial.values);
      trial.plan = planned.plan;
      recipe = std::move(planned.recipe);
    } catch (const std::exception& error) {
      end_failed(trial, error.what());
      return false;
    }
    if (std::string reason = why_refused(constraints_, trial.plan); !reason.empty())
      return refuse(trial, std::move(reason));
    if (rungs_of(settings_.scheduler, trial.bracket).size() == 1) trial.target = trial.plan.epochs;
    std::error_code code;
    fs::remove_all(study_.run_of(trial.number), code);  // of a trial that a power cut has taken out of the study
    recipes_.write(trial.number, recipe);
    refused_in_a_row_ = 0;
    records_.keep(trial);
    return true;
  }

  /// Writes the recipe that a power cut has taken. False where that cannot be made any more and the run has not begun,
  /// which is recorded.
  bool restore_recipe(StudyTrial& trial) {
    if (recipes_.has(trial.number)) return true;
    try {
      recipes_.write(trial.number, planner_.recipe(trial.values));
      return true;
    } catch (const std::exception& error) {
      if (study_.has_run(trial.number)) return true;
      records_.end_failed(trial, error.what());
      return false;
    }
  }

  /// While all workers train: plans the trial that would be next by what is known now, so that no worker waits for its
  /// plan.
  void plan_ahead() {
    if (!planner_.wants_guess() || held_ || !has_changed_ || workers_.empty() || has_free_place()) return;
    has_changed_ = false;
    try {
      const std::optional<StudyTrial> next = chooser_.choose(study_.trials());
      if (next && !next->parent && next->plan.epochs == 0) planner_.guess(next->number, next->values);
    } catch (const std::exception&) {  // of the searcher, which says so when it is its turn
    }
  }

  bool refuse(StudyTrial& trial, std::string reason) {
    trial.state = State::refused;
    trial.reason = std::move(reason);
    records_.end(trial);
    if (++refused_in_a_row_ >= kRefusedInARow)
      fail(ErrorKind::usage, "{} trials in a row do not keep to the constraints; {}", refused_in_a_row_,
           nearest_refused(constraints_, study_.trials()));
    return false;
  }

  /// Where the space has no more points, and none of them keeps to the constraints.
  void require_any_allowed(const std::vector<StudyTrial>& trials) const {
    const bool all_are_refused = !trials.empty() && std::all_of(trials.begin(), trials.end(), [](const auto& trial) {
      return trial.state == State::refused;
    });
    if (all_are_refused && chooser_.is_exhausted())
      fail(ErrorKind::usage, "no point of the space keeps to the constraints; {}",
           nearest_refused(constraints_, trials));
  }

  /// Here, or at a worker elsewhere; false where neither has room for it now.
  bool start(const StudyTrial& trial) {
    const bool is_here = is_free_here() && take_place(trial);
    if (!is_here && server_ == nullptr) return false;
    std::error_code code;
    TrainingJob job{.trial = trial.number,
                    .run = study_.run_of(trial.number),
                    .recipe = study_.recipe_of(trial.number),
                    .memory = trial.plan.memory};
    job.goes_on = trial.parent || study_.has_run(trial.number);
    if (trial.parent)
      for (const auto& [key, value] : trial.values)
        job.options.insert(job.options.end(), {"--set", key + "=" + shown(value)});
    job.options.insert(job.options.end(), {"--pause-after", std::to_string(trial.target), "--quiet"});
    if (is_here && !job.goes_on) fs::remove_all(job.run, code);  // what a process left that died before its run began
    std::unique_ptr<Training> training = is_here ? trainers_.train(job) : server_->train(job);
    if (training == nullptr) return false;
    Worker worker{.trial = trial, .training = std::move(training), .is_here = is_here};
    // Where this process dies, the trial is nobody's only once its own process has ended, too.
    worker.trial.owner = is_here ? owner_here(owner_, identity_of(worker.training->process())) : owner_;
    workers_.push_back(std::move(worker));
    has_changed_ = true;
    records_.keep(workers_.back().trial);
    return true;
  }

  void reap() {
    for (size_t index = 0; index < workers_.size();) {
      Worker& worker = workers_[index];
      const bool has_ended = worker.training->has_ended();
      worker.output += worker.training->read();
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
    has_changed_ = true;
    StudyTrial& trial = worker.trial;
    const Training& training = *worker.training;
    const int code = training.exit_code();
    const bool was_asked = trial.is_cut || is_ending_;
    // Somebody else may have killed it: it goes on, unless that happens again and again, as where memory is short.
    const bool goes_on = code == 128 + SIGKILL && training.was_killed() && ++kills_[trial.number] <= kMostKills;
    const bool is_given_on = training.was_lost() && ++losses_[trial.number] <= kMostLosses;
    const bool is_interrupted = code == 130 || goes_on || is_given_on || (was_asked && training.was_killed());
    if (room_ && workers_.empty()) room_->leave();
    if ((code != 0 || training.was_lost()) && !is_interrupted) {
      return end_failed(trial, why_failed(worker));
    }
    if (is_interrupted && !trial.is_cut) {
      records_.take_results(trial);
      return records_.end_interrupted(trial);
    }
    if (!is_interrupted) trial.is_cut = false;  // it came to its target before the scheduler's word reached it
    has_trained(trial);
  }

  std::string why_failed(const Worker& worker) const {
    const Training& training = *worker.training;
    if (std::string message = last_message(worker.output); !message.empty()) return message;
    if (training.was_lost())
      return fmt::format("{} workers were lost that trained it", losses_.at(worker.trial.number));
    if (!training.was_killed()) return fmt::format("it ended with code {}", training.exit_code());
    const int signal = training.exit_code() - 128;
    return fmt::format("signal {} ended it{}", signal,
                       signal == SIGKILL ? ", as the system does where memory runs out" : "");
  }

  void has_trained(StudyTrial& trial) {
    alike_ = 0;
    if (needs_deployment(settings_.objectives))
      trained_.push_back(trial);
    else
      records_.settle(trial, {});
  }

  /// What trained trials are as they are deployed. A latency is measured while no trial trains, here or in another
  /// process.
  void measure_trained() {
    if (trained_.empty() || (room_ && (!workers_.empty() || !room_->enter_alone()))) return;
    while (!trained_.empty() && !wants_stop()) {
      StudyTrial& trial = trained_.front();
      try {
        const std::optional<Deployed> deployed =
            measure_deployed(program_, study_.run_of(trial.number), settings_.threads, room_ != nullptr,
                             [this] { return wants_stop(); });
        if (!deployed) break;
        records_.settle(trial, deployed);
      } catch (const Error& error) {
        records_.end_failed(trial, error.what());
      }
      trained_.erase(trained_.begin());
      sync();
    }
    if (room_) room_->leave_alone();
    next_look_ = 0;
  }

  /// By the scheduler, from what it has measured until now.
  bool is_poor(StudyTrial& trial) const {
    records_.take_curve(trial);
    std::vector<StudyTrial> trials = study_.trials();
    const auto number = static_cast<size_t>(trial.number);
    trials[number] = trial;
    return should_stop(settings_.scheduler, progress_of(settings_, trials), number);
  }

  /// Running trials that are poor. Each is looked at when it has measured something more.
  void stop_poor_trials() {
    if (!ends_trials_early(settings_.scheduler)) return;
    for (Worker& worker : workers_) {
      const double begin = hooks_.clock();
      if (worker.trial.is_cut || begin < worker.next_look) continue;
      const uintmax_t bytes = std::exchange(worker.seen_bytes, records_.metrics_bytes(worker.trial));
      const bool stops = bytes != worker.seen_bytes && is_poor(worker.trial);
      worker.next_look = begin + std::max(kLookSeconds, kLookRatio * (hooks_.clock() - begin));
      if (!stops) continue;
      worker.trial.is_cut = true;
      records_.keep(worker.trial);  // who goes on with the study knows it, whatever happens now
      worker.training->stop();
    }
  }

  /// Each trial makes a checkpoint, from which it goes on with the study.
  void interrupt_all() {
    is_ending_ = true;
    for (const Worker& worker : workers_) worker.training->stop();
    while (!workers_.empty()) {
      reap();
      std::this_thread::sleep_for(kPause);
    }
    if (!wants_stop()) measure_trained();
    for (StudyTrial& trial : trained_) {  // their runs are there: resumed, they end at once and are measured
      records_.end_interrupted(trial);
    }
    trained_.clear();
    if (!held_) return;
    records_.end_interrupted(*held_);
    held_.reset();
  }

  void tell_status() {
    if (!hooks_.status) return;
    const double now = hooks_.clock();
    if (now - told_ < 0.1) return;
    told_ = now;
    std::optional<double> left;
    if (limits_.seconds > 0) left = std::max(0.0, limits_.seconds - (now - begin_));
    const int64_t places = limits_.workers + (server_ != nullptr ? server_->places() : 0);
    hooks_.status(status_of(settings_, study_.trials(), limits_.trials, places, left));
  }

  const Library& library_;
  Study& study_;
  const StudySettings& settings_;
  const TuneLimits limits_;
  const std::string program_;
  Trainers trainers_;
  const TuneHooks& hooks_;
  WorkerServer* const server_;  // null: there are no workers elsewhere
  const double begin_;
  const std::string owner_;
  TrialChooser chooser_;
  TrialPlanner planner_;
  TrialRecipes recipes_;
  TrialRecords records_;
  std::vector<Constraint> constraints_;
  int64_t memory_ = 0;    // bytes, of all trials together
  const int64_t places_;  // of this host
  std::vector<Worker> workers_;
  bool has_changed_ = false;               // since the last guess: a trial of this process has begun or ended
  std::vector<StudyTrial> trained_;        // their processes have ended; not yet measured as they are deployed
  std::unique_ptr<QuietRoom> room_;        // where latencies are measured
  std::map<int64_t, int> kills_, losses_;  // of trials, by their numbers: killed by others, with their workers
  std::optional<StudyTrial> held_;         // claimed, and waits for memory
  bool is_ending_ = false;
  bool nothing_left_ = false;  // to start, also once those that run have ended
  int64_t refused_in_a_row_ = 0;
  std::string last_reason_ = {};  // why a trial failed,
  int64_t alike_ = 0;             // and how many in a row for that reason
  int looks_ = 0;                 // at a run that another process trains in
  double told_ = -1, next_look_ = 0;
};

}  // namespace

int64_t places_here(const StudySettings& settings) {
  return std::max<int64_t>(1, available_cores() / settings.threads);
}

TuneOutcome run_study(const Library& library, Study& study, const TuneLimits& limits, const std::string& program,
                      const TuneHooks& hooks, WorkerServer* server) {
  require_same_data(study, library);
  return Tuner(library, study, limits, program, hooks, server).run();
}

}  // namespace weft::tune
