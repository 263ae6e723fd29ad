#include "weft/tune/results/winner.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/launch/child_process.h"
#include "weft/tune/results/what_mattered.h"
#include "weft/tune/study/deployed_run.h"
#include "weft/tune/study/lineage.h"
#include "weft/tune/trials/trial_plan.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

bool is_of_the_front(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("best-") && name.ends_with(".toml");
}

}  // namespace

void write_best(Study& study, const StudyTrial& best, const Library& library) {
  const StudySettings& settings = study.settings();
  const std::vector<StudyTrial> trials = study.trials();
  const bool is_one = settings.objectives.size() == 1;
  const std::string remark = what_mattered(settings, trials);
  std::set<fs::path> written;
  for (const StudyTrial& trial : is_one ? std::vector{best} : best_trials(settings, trials)) {
    const fs::path file =
        trial.number == best.number ? study.best() : study.folder() / fmt::format("best-{:04}.toml", trial.number);
    write_atomically(file, print_best(settings, lineage_of(trials, trial), trial, library, remark));
    written.insert(file);
  }
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(study.folder(), code))
    if (is_of_the_front(entry.path()) && !written.contains(entry.path())) fs::remove(entry.path(), code);
}

namespace {

/// Of the best trial, which has not trained to its end.
std::string why_not_tested(const Study& study, const StudyTrial& best, const std::vector<StudyTrial>& trials) {
  std::string line =
      fmt::format("the best trial, {}, is {} after {} of {} epochs: its test data are not measured", best.number,
                  name_of(best.state), best.curve.empty() ? 0 : best.curve.back().first, best.plan.epochs);
  if (best.state == StudyTrial::State::stopped) return line;
  const auto counted = std::count_if(trials.begin(), trials.end(),
                                     [](const StudyTrial& trial) { return trial.state != StudyTrial::State::refused; });
  return line +
         fmt::format("; `weft tune --resume {} --trials {}` begins no other trial and trains the best to its end",
                     study.folder().string(), counted);
}

}  // namespace

std::optional<run::Summary> measure_winner(Study& study, const StudyTrial& best, const std::string& program,
                                           const std::function<bool()>& stop_requested,
                                           const std::function<void(const std::string&)>& note) {
  const fs::path run = study.run_of(best.number), summary = run / "summary.json";
  std::error_code code;
  if (!study.has_run(best.number)) {
    if (note)
      note(fmt::format(
          "the run of the best trial, {}, is gone from '{}': its test data are not measured; train its recipe anew by "
          "`weft train {}`",
          best.number, run.string(), quoted_for_shell(study.best().string())));
    return std::nullopt;
  }
  if (best.state != StudyTrial::State::finished) {
    if (note) note(why_not_tested(study, best, study.trials()));
    return std::nullopt;
  }
  if (!fs::exists(summary, code)) {
    launch::ChildProcess process({program, "train", "--resume", run.string(), "--quiet", "--json"},
                                 launch::ChildProcess::Output::kept);
    std::string output;
    while (!process.has_ended() && !(stop_requested && stop_requested()))
      output += process.wait(std::chrono::milliseconds(100));
    if (!process.has_ended()) return std::nullopt;
    output += process.read();
    if (process.exit_code() != 0 && note) note("the test data were not measured: " + last_message(output));
  }
  if (!fs::exists(summary, code)) return std::nullopt;
  return run::parse_summary(read_text(summary));
}

}  // namespace weft::tune
