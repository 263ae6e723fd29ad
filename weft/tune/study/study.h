// A study: a folder with a database of its trials, their recipes and their run directories.
//   study.db         settings, trials, what they measured (SQLite, write-ahead log: on one host)
//   recipe.toml      what trials change, with the assignments of --set in settings of the database
//   trials/0012.toml the recipe of trial 12          runs/0012/   its run directory
//   best.toml        the recipe of the best trial
// Several processes of a host may work on one study. A process that dies leaves its trials to the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/tune/schedulers/scheduler.h"
#include "weft/tune/searchers/searcher.h"
#include "weft/tune/space/space.h"
#include "weft/tune/study/database.h"
#include "weft/tune/study/objective.h"

namespace weft::tune {

/// What makes trials comparable, and decides which there are. It never changes, but for how many trials there are.
struct StudySettings {
  Space space = {};
  std::string recipe = {};            // TOML
  std::vector<std::string> set = {};  // assignments to its keys, as --set has them
  std::vector<Objective> objectives = {};
  std::vector<std::string> constraints = {};
  std::string searcher = "auto";
  SchedulerOptions scheduler = {};  // without SchedulerOptions::trials
  int64_t seed = 1;
  int64_t threads = 1;  // of each trial: they change the sums
  /// A trial is chosen by the results of all but the last so many before it, less one, whichever ends first: the study
  /// does not depend on how long trials take. 0: by all results that are there.
  int64_t in_order = 0;
};

struct StudyTrial {
  enum class State {
    running,      // in the processes `owner`
    interrupted,  // its process stopped: it goes on towards `target`
    paused,       // has reached `target`; a scheduler may let it go on
    finished,     // has trained to its end
    stopped,      // a scheduler ended it
    failed,       // see `reason`
    refused,      // its plan does not keep to a constraint: it was not started
  };
  int64_t number = 0;
  State state = State::running;
  Values values = {};
  int64_t generation = 0;              // of its searcher
  int64_t bracket = 0;                 // of its scheduler
  int64_t target = 0;                  // epochs
  std::optional<int64_t> parent = {};  // the trial that it began as a copy of,
  int64_t begun = 0;                   // and after how many epochs
  bool is_cut = false;                 // a scheduler has decided that it ends where it is, before `target`
  std::string owner = {};
  std::vector<double> results = {};                    // of the objectives, as they were measured
  std::vector<std::pair<int64_t, double>> curve = {};  // epochs, and the first objective then
  std::string reason = {};
  TrialPlan plan = {};
  double seconds = 0;  // of training

  bool has_results() const { return !results.empty(); }
};

/// "finished"
const char* name_of(StudyTrial::State state);

class Study {
 public:
  /// Makes the folder, or joins the study that is there. Error(usage) where that has other settings, naming the first
  /// that differs, or the folder holds something else.
  static Study create(const std::filesystem::path& folder, const StudySettings& settings);
  /// Error(usage) where there is no study.
  static Study open(const std::filesystem::path& folder, double busy_seconds = kBusySeconds);
  /// To read alone, where this user may not write it, too.
  static Study look_at(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const StudySettings& settings() const { return settings_; }
  std::filesystem::path recipe_of(int64_t number) const;
  std::filesystem::path run_of(int64_t number) const;
  /// Whether that directory holds a run.
  bool has_run(int64_t number) const;
  std::filesystem::path best() const { return folder_ / "best.toml"; }

  /// How many trials the study is to have, as it was last set; 0: nobody has said.
  int64_t wanted_trials();
  void set_wanted_trials(int64_t trials);

  /// Trials at a time on a host, as the user last asked for, more than 0; nullopt: nobody has.
  std::optional<int64_t> workers();
  void set_workers(int64_t workers);

  /// The file that the study is written to in Optuna's tables as well (optuna_storage.h); empty: none.
  std::filesystem::path storage();
  void set_storage(const std::filesystem::path& file);

  /// What the data were when the study began (spec::print_data_description); empty: not yet known.
  std::string data();
  void set_data(const std::string& description);

  /// In the order of their numbers, as they are now.
  std::vector<StudyTrial> trials();

  /// Looks at the trials and changes one of them, or adds one with the next number, while no other process does either.
  /// Running trials whose process is dead are interrupted ones. What `decide` returns is written, where it returns
  /// something; the number of a new trial is how many there are. A power cut may undo this, as it ends what runs.
  std::optional<StudyTrial> change(
      const std::function<std::optional<StudyTrial>(const std::vector<StudyTrial>& trials)>& decide);
  /// Writes a trial that this process owns. A power cut may undo it until sync().
  void update(const StudyTrial& trial);
  /// Waits until what was written of trials that have ended outlives a power cut.
  void sync();

 private:
  Study(std::filesystem::path folder, std::unique_ptr<Database> database, StudySettings settings)
      : folder_(std::move(folder)), database_(std::move(database)), settings_(std::move(settings)) {}
  void write(const StudyTrial& trial);
  const std::vector<StudyTrial>& read_trials();
  void remember(const StudyTrial& trial);
  std::string read_setting(const char* name);  // empty where nobody has set it
  void write_setting(const char* name, const std::string& value);

  std::filesystem::path folder_;
  std::unique_ptr<Database> database_;
  StudySettings settings_;
  std::vector<StudyTrial> known_;  // as the database had them
  int64_t known_version_ = -1;     // of it then
  bool is_synced_ = true;
};

/// As searchers and schedulers see the trials.
History history_of(const StudySettings& settings, const std::vector<StudyTrial>& trials);
std::vector<TrialProgress> progress_of(const StudySettings& settings, const std::vector<StudyTrial>& trials);

/// Those that no other one beats in all objectives: of the trials that trained to their end, or of all with results
/// where none did.
std::vector<StudyTrial> best_trials(const StudySettings& settings, const std::vector<StudyTrial>& trials);
/// Of these the best by the first objective; nullopt where no trial has results.
std::optional<StudyTrial> best_trial(const StudySettings& settings, const std::vector<StudyTrial>& trials);

}  // namespace weft::tune
