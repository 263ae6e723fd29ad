#include "weft/tune/trials/trial_chooser.h"

#include <algorithm>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/tune/schedulers/population.h"

namespace weft::tune {

namespace {

using State = StudyTrial::State;

/// As predicted, to its target.
double seconds_left(const StudyTrial& trial) {
  const int64_t done = trial.curve.empty() ? trial.begun : trial.curve.back().first;
  return trial.plan.seconds * static_cast<double>(trial.target - done) /
         static_cast<double>(std::max<int64_t>(1, trial.plan.epochs));
}

/// The one that takes the longest: begun last, it would keep one worker busy alone. Null: none is interrupted.
const StudyTrial* longest_interrupted(const std::vector<StudyTrial>& trials) {
  const StudyTrial* longest = nullptr;
  for (const StudyTrial& trial : trials)
    if (trial.state == State::interrupted && (longest == nullptr || seconds_left(trial) > seconds_left(*longest)))
      longest = &trial;
  return longest;
}

}  // namespace

TrialChooser::TrialChooser(const Library& library, const Study& study, int64_t most, std::string owner,
                           std::function<void(const std::string&)> note)
    : study_(study),
      settings_(study.settings()),
      most_(most),
      owner_(std::move(owner)),
      note_(std::move(note)),
      searcher_(make_searcher(settings_.searcher,
                              {.objectives = static_cast<int64_t>(settings_.objectives.size()), .library = &library})) {
}

std::optional<StudyTrial> TrialChooser::choose(const std::vector<StudyTrial>& trials) {
  waits_for_others_ = false;
  if (const StudyTrial* longest = longest_interrupted(trials)) return claimed(*longest);
  std::vector<StudyTrial> counted;
  for (const StudyTrial& trial : trials)
    if (trial.state != State::refused) counted.push_back(trial);
  SchedulerOptions options = settings_.scheduler;
  options.trials = most_;
  const Job job = next_job(options, progress(counted));
  if (job.kind != Job::Kind::start) return of_begun(job, counted, trials.size());
  if (lacks_results(trials)) {
    waits_for_others_ = true;
    return std::nullopt;
  }
  const History history = history_of(settings_, told(trials));
  const SearchState state{settings_.space, history, settings_.seed};
  // A population has as many members as it has, also where the space has fewer points.
  const bool repeats = settings_.scheduler.name == "population";
  const std::optional<Proposal> proposal = repeats ? searcher_->ask(state) : propose_new(*searcher_, state);
  if (!proposal) {
    if (!is_exhausted_ && note_) note_("every point of the space has been tried");
    is_exhausted_ = true;
    options.trials = static_cast<int64_t>(counted.size());  // there are no more
    return of_begun(next_job(options, progress(counted)), counted, trials.size());
  }
  return claimed({.number = static_cast<int64_t>(trials.size()),
                  .values = settings_.space.values(proposal->point),
                  .generation = proposal->generation,
                  .bracket = job.bracket,
                  .target = job.target});
}

/// The job of a trial that has begun, or of a copy of one.
std::optional<StudyTrial> TrialChooser::of_begun(const Job& job, const std::vector<StudyTrial>& counted,
                                                 size_t trials) {
  waits_for_others_ = job.kind == Job::Kind::wait;
  if (job.kind == Job::Kind::copy) return copied(counted[job.trial], job, static_cast<int64_t>(trials));
  if (job.kind != Job::Kind::go_on) return std::nullopt;
  StudyTrial trial = counted[job.trial];
  trial.target = job.target;
  return claimed(std::move(trial));
}

bool TrialChooser::counts(const StudyTrial& trial, size_t trials) const {
  return settings_.in_order == 0 || trial.number + settings_.in_order <= static_cast<int64_t>(trials);
}

/// Results that must be told before the next trial is chosen are not there yet.
bool TrialChooser::lacks_results(const std::vector<StudyTrial>& trials) const {
  return settings_.in_order > 0 && std::any_of(trials.begin(), trials.end(), [&](const StudyTrial& trial) {
           return trial.state == State::running && counts(trial, trials.size());
         });
}

/// The trials as the searcher may know them: later ones are as if they ran.
std::vector<StudyTrial> TrialChooser::told(std::vector<StudyTrial> trials) const {
  for (StudyTrial& trial : trials) {
    if (counts(trial, trials.size())) continue;
    trial.state = State::running;
    trial.results.clear();
    trial.curve.clear();
  }
  return trials;
}

/// An origin stays where it is until each copy of its run is there.
std::vector<TrialProgress> TrialChooser::progress(const std::vector<StudyTrial>& counted) const {
  std::vector<TrialProgress> all = progress_of(settings_, counted);
  std::error_code code;
  for (const StudyTrial& trial : counted) {
    const bool is_wanted = trial.state == State::running || trial.state == State::interrupted;
    if (!trial.parent || !is_wanted || std::filesystem::exists(study_.run_of(trial.number), code)) continue;
    for (size_t index = 0; index < counted.size(); ++index)
      if (counted[index].number == *trial.parent) all[index].is_held = true;
  }
  return all;
}

/// A new member of the population in place of one that does worse. Its run is still to be made.
StudyTrial TrialChooser::copied(const StudyTrial& origin, const Job& job, int64_t number) const {
  return claimed({.number = number,
                  .values = explored(settings_.space, origin.values, settings_.seed, number),
                  .bracket = job.bracket,
                  .target = job.target,
                  .parent = origin.number,
                  .begun = job.begun});
}

StudyTrial TrialChooser::claimed(StudyTrial trial) const {
  trial.state = State::running;
  trial.owner = owner_;
  return trial;
}

}  // namespace weft::tune
