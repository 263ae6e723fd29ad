#include "weft/tune/trial_chooser.h"

#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/tune/population.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

using State = StudyTrial::State;

/// With its checkpoints, at once or not at all.
void copy_run(const fs::path& from, const fs::path& to) {
  const fs::path half = to.string() + ".partial";
  std::error_code code;
  fs::remove_all(half, code);
  fs::remove_all(to, code);
  fs::copy(from, half, fs::copy_options::recursive, code);
  if (code) {
    const std::string why = code.message();
    fs::remove_all(half, code);
    fail(ErrorKind::io, "cannot copy '{}' to '{}': {}; make room there, then go on with the study", from.string(),
         to.string(), why);
  }
  fs::rename(half, to);
  sync_directory(to.parent_path());
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
  for (StudyTrial trial : trials)
    if (trial.state == State::interrupted) return claimed(std::move(trial));
  std::vector<StudyTrial> counted;
  for (const StudyTrial& trial : trials)
    if (trial.state != State::refused) counted.push_back(trial);
  SchedulerOptions options = settings_.scheduler;
  options.trials = most_;
  const Job job = next_job(options, progress_of(settings_, counted));
  if (job.kind == Job::Kind::wait) waits_for_others_ = true;
  if (job.kind == Job::Kind::go_on) {
    StudyTrial trial = counted[job.trial];
    trial.target = job.target;
    return claimed(std::move(trial));
  }
  if (job.kind == Job::Kind::copy) return copied(counted, job, static_cast<int64_t>(trials.size()));
  if (job.kind != Job::Kind::start) return std::nullopt;
  const History history = history_of(settings_, trials);
  const SearchState state{settings_.space, history, settings_.seed};
  // A population has as many members as it has, also where the space has fewer points.
  const bool repeats = settings_.scheduler.name == "population";
  const std::optional<Proposal> proposal = repeats ? searcher_->ask(state) : propose_new(*searcher_, state);
  if (!proposal) {
    if (!is_exhausted_ && note_) note_("every point of the space has been tried");
    is_exhausted_ = true;
    return std::nullopt;
  }
  return claimed({.number = static_cast<int64_t>(trials.size()),
                  .values = settings_.space.values(proposal->point),
                  .generation = proposal->generation,
                  .bracket = job.bracket,
                  .target = job.target});
}

/// A new member of the population in place of one that does worse. The run is copied now, before anybody lets the
/// origin go on.
StudyTrial TrialChooser::copied(const std::vector<StudyTrial>& trials, const Job& job, int64_t number) {
  const StudyTrial& origin = trials[job.trial];
  copy_run(study_.run_of(origin.number), study_.run_of(number));
  for (const StudyTrial& trial : trials)
    if (trial.bracket == job.bracket) replaced_ = trial;
  return claimed({.number = number,
                  .values = explored(settings_.space, origin.values, settings_.seed, number),
                  .bracket = job.bracket,
                  .target = job.target,
                  .parent = origin.number,
                  .begun = job.begun,
                  .curve = origin.curve});
}

StudyTrial TrialChooser::claimed(StudyTrial trial) const {
  trial.state = State::running;
  trial.owner = owner_;
  return trial;
}

}  // namespace weft::tune
