// weft tune: a search over the keys of a recipe.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "weft/base/clock.h"
#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/progress.h"
#include "weft/base/say.h"
#include "weft/base/table.h"
#include "weft/cli/command.h"
#include "weft/cli/options.h"
#include "weft/cli/starting_data.h"
#include "weft/cli/tune/study_table.h"
#include "weft/cli/tune/tune_show.h"
#include "weft/cli/tune/tune_trainer.h"
#include "weft/cli/tune/tune_worker.h"
#include "weft/run/starting_recipe.h"
#include "weft/spec/built_in_recipes.h"
#include "weft/train/interrupt.h"
#include "weft/tune/begin_study.h"
#include "weft/tune/ranges/proposed_search.h"
#include "weft/tune/results/what_mattered.h"
#include "weft/tune/study/optuna_storage.h"
#include "weft/tune/tuner.h"

namespace weft::cli {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kTrials = 50;  // where neither their number nor a time is given

struct TuneOptions {
  std::string recipe, data, space, study, resume, time, storage, serve, lost_after;
  std::vector<std::string> set, ranges;
  std::vector<std::string> given;  // the options on the command line, by their names
  std::optional<int64_t> trials;
  std::optional<int64_t> workers;
  tune::StudyRequest request = {.recipe = {}, .ranges = {}};
  bool quiet = false, json = false;
};

/// "optdigits" of "recipes/optdigits.toml".
std::string stem_of(const std::string& recipe) { return fs::path(recipe).stem().string(); }

/// studies/NAME-N with the next free N, made: a search that begins at the same time takes the next one.
fs::path free_folder(const std::string& name) {
  make_directories("studies");
  for (int number = 1;; ++number) {
    fs::path folder = fs::path("studies") / fmt::format("{}-{}", name, number);
    std::error_code code;
    if (fs::create_directory(folder, code)) return folder;
    if (code)
      fail(ErrorKind::io, "cannot make '{}': {}; name another folder by --study", folder.string(), code.message());
  }
}

std::string recipe_text(const Library& library, const std::string& name) {
  spec::RunSpec checked;
  apply_recipe(library, checked, name);  // for its messages
  std::error_code code;
  const spec::BuiltInRecipe* built_in = spec::find_built_in_recipe(name);
  return built_in != nullptr && !fs::is_regular_file(name, code) ? built_in->text : read_text(name);
}

/// The study is written to this file as well, from now on. What cannot be written to is not kept.
void add_storage(tune::Study& study, const std::string& text) {
  const fs::path storage = tune::storage_file(text);
  tune::OptunaStorage(storage, study);
  study.set_storage(storage);
}

tune::Study begin_study(const Library& library, const TuneOptions& options) {
  if (options.recipe.empty() == options.data.empty())
    fail(ErrorKind::usage, "{}",
         options.recipe.empty()
             ? "there is nothing to tune: give a recipe (`weft recipes` lists some), data by --data SPEC, for which "
               "weft "
               "chooses one, or go on with a study by --resume DIR"
             : "a recipe names its data: give either RECIPE or --data; `--set data=SPEC` changes those of the recipe");
  tune::StudyRequest request = options.request;
  std::string name = stem_of(options.recipe);
  if (options.recipe.empty()) {
    const OpenedData opened = open_for_recipe(library, options.data);
    const run::StartingRecipe chosen = run::choose_recipe(opened.spec, *opened.training, opened.test.get());
    request.recipe = spec::print_recipe(chosen.spec, "", chosen.keys, library);
    name = opened.training->info().name;
    say(fmt::format("the recipe is that of `weft init`: {}", chosen.spec.model.name));
  } else {
    request.recipe = recipe_text(library, options.recipe);
  }
  request.set = options.set;
  if (!options.space.empty()) request.ranges = tune::parse_space_file(read_text(options.space), options.space);
  for (const std::string& text : options.ranges) request.ranges.push_back(tune::parse_range(text));
  const tune::StudySettings settings = tune::study_settings(library, request, say);
  const fs::path folder = options.study.empty() ? free_folder(name) : fs::path(options.study);
  std::error_code code;
  const bool is_new = !fs::exists(folder / "study.db", code);
  tune::Study study = tune::Study::create(folder, settings);
  if (options.storage.empty()) return study;
  try {
    add_storage(study, options.storage);
  } catch (const Error&) {
    if (is_new && study.trials().empty()) fs::remove_all(folder, code);  // nobody has asked for it without the storage
    throw;
  }
  return study;
}

tune::Study open_study(const Library& library, const TuneOptions& options) {
  if (options.resume.empty()) return begin_study(library, options);
  const std::vector<std::string> allowed = {"--resume", "--trials",  "--time",  "--workers",   "--quiet",
                                            "--json",   "--storage", "--serve", "--lost-after"};
  for (const std::string& name : options.given)
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
      fail(ErrorKind::usage,
           "--resume takes all but --trials, --time, --workers, --serve and --storage from the study; leave {} away, "
           "or begin "
           "another study",
           name);
  tune::Study study = tune::Study::open(options.resume);
  if (!options.storage.empty()) add_storage(study, options.storage);
  return study;
}

/// Shows where a study stands: one line that updates itself on a terminal, else a line for each trial that ended.
class StudyProgress {
 public:
  StudyProgress(const Library& library, const tune::StudySettings& settings, bool quiet)
      : library_(library), settings_(settings), quiet_(quiet), options_(progress_options_for(stderr)) {}
  ~StudyProgress() { clear(); }
  StudyProgress(const StudyProgress&) = delete;
  StudyProgress& operator=(const StudyProgress&) = delete;

  void update(const tune::TuneStatus& status) {
    status_ = status;
    if (quiet_ || !options_.terminal) return;
    std::string line = in_words();
    line.resize(std::min(line.size(), static_cast<size_t>(std::max(1, options_.columns - 1))));
    std::fputs(fmt::format("\r\x1b[K{}", line).c_str(), stderr);
    std::fflush(stderr);
    is_open_ = true;
  }

  void add(const tune::StudyTrial& trial) {
    if (quiet_) return;
    clear();
    std::string line = fmt::format("trial {}: {}", trial.number, name_of(trial.state));
    if (trial.has_results() && trial.reason.empty())
      for (size_t index = 0; index < settings_.objectives.size(); ++index)
        line += fmt::format(", {} {}", settings_.objectives[index].name,
                            objective_in_words(settings_.objectives[index], trial.results[index], library_));
    if (!trial.reason.empty()) line += ": " + trial.reason;
    std::fputs((printable(line) + "\n").c_str(), stderr);
  }

  void clear() {
    if (is_open_) std::fputs("\r\x1b[K", stderr);
    is_open_ = false;
  }

 private:
  std::string in_words() const {
    std::string line = fmt::format("trial {}", status_.done);
    if (status_.wanted > 0) line += fmt::format("/{}", status_.wanted);
    line += fmt::format(", {} running", status_.running);
    if (status_.best)
      line += fmt::format(", best {} {} (trial {})", settings_.objectives.front().name,
                          objective_in_words(settings_.objectives.front(), status_.best->results.front(), library_),
                          status_.best->number);
    if (status_.failed > 0) line += fmt::format(", {} failed", status_.failed);
    if (status_.refused > 0) line += fmt::format(", {} refused", status_.refused);
    if (status_.seconds_left) line += fmt::format(", about {} left", human_duration(*status_.seconds_left));
    return line;
  }

  const Library& library_;
  const tune::StudySettings& settings_;
  const bool quiet_;
  const ProgressOptions options_;
  tune::TuneStatus status_;
  bool is_open_ = false;
};

void print_best(const Library& library, tune::Study& study, const tune::TuneOutcome& outcome,
                const std::string& program) {
  const tune::StudySettings& settings = study.settings();
  const tune::StudyTrial& best = *outcome.best;
  Table table({{"", Align::left}, {"", Align::left}});
  table.add_row({"best trial", std::to_string(best.number)});
  for (size_t index = 0; index < settings.objectives.size(); ++index)
    table.add_row({settings.objectives[index].name,
                   objective_in_words(settings.objectives[index], best.results[index], library)});
  if (outcome.summary)
    for (const MetricValue& metric : outcome.summary->test_metrics)
      if (const MetricEntry* entry = find_entry(library.metrics, metric.name); entry != nullptr && metric.value)
        table.add_row({"test_" + metric.name, shown(*entry, metric.value)});
  add_values(table, study.trials(), best);
  const bool has_run = study.has_run(best.number);
  if (has_run) table.add_row({"run", printable(study.run_of(best.number).string())});
  table.add_row({"recipe", printable(study.best().string())});
  const std::string command = quoted_for_shell(program), folder = quoted_for_shell(study.folder().string());
  std::string mattered = tune::what_mattered(settings, study.trials());
  if (!mattered.empty()) mattered += "\n";
  fmt::print("{}{}next, try:\n  {} tune show {}\n", table.text(), mattered, command, folder);
  if (has_run) fmt::print("  {} train {}\n", command, quoted_for_shell(study.best().string()));  // else it was said
}

/// As this command says, or the study does. No more than the cores have room for: more trials at a time would only take
/// longer each.
int64_t workers_of(const TuneOptions& options, tune::Study& study) {
  const tune::StudySettings& settings = study.settings();
  const int64_t places = tune::places_here(settings), cores = available_cores();
  const int64_t wanted = options.workers.value_or(study.workers().value_or(places));
  if (wanted > places)
    say(fmt::format("warning: --workers {}, but {} cores have room for {} with --threads {}; no more train at a time",
                    wanted, cores, places, settings.threads));
  else if (settings.threads > cores)
    say(fmt::format("warning: --threads {}, but there are {} cores; fewer threads make each trial faster",
                    settings.threads, cores));
  return std::min(wanted, places);
}

int tune_command(const Library& library, const TuneOptions& options, const std::string& program) {
  std::optional<double> seconds;
  if (!options.time.empty() && !(seconds = parse_duration(options.time)))
    fail(ErrorKind::usage, "--time '{}' is no duration; write 30m, 2h, 1h 30m or 3600 (seconds)", options.time);
  tune::Study study = open_study(library, options);
  int64_t trials = options.trials.value_or(study.wanted_trials());
  const bool wants_members = study.settings().scheduler.name == "population";
  if (trials == 0 && (!seconds || wants_members)) trials = kTrials;
  if (trials != study.wanted_trials()) study.set_wanted_trials(trials);
  const int64_t workers = workers_of(options, study);
  if (workers == 0 && options.serve.empty())
    fail(ErrorKind::usage, "--workers 0 leaves nobody to train; add --serve HOST:PORT for workers on other hosts");
  // Nobody here is the wish of a command that serves others, and not of one that goes on without them.
  if (options.workers && *options.workers > 0) study.set_workers(*options.workers);
  const std::unique_ptr<tune::WorkerServer> server =
      options.serve.empty() ? nullptr : serve_workers(library, study, options.serve, options.lost_after, program);

  const train::InterruptGuard interrupt;
  StudyProgress progress(library, study.settings(), options.quiet);
  const tune::TuneHooks hooks{.status = [&](const tune::TuneStatus& status) { progress.update(status); },
                              .trial_ended = [&](const tune::StudyTrial& trial) { progress.add(trial); },
                              .note =
                                  [&](const std::string& line) {
                                    progress.clear();
                                    say(line);
                                  },
                              .stop_requested = [&] { return interrupt.requested(); },
                              .clock = steady_seconds};
  const tune::TuneOutcome outcome =
      run_study(library, study, {.trials = trials, .seconds = seconds.value_or(0), .workers = workers},
                fs::read_symlink("/proc/self/exe").string(), hooks, server.get());
  progress.clear();
  if (outcome.was_stopped) {
    say(fmt::format("stopped; go on with `{} tune --resume {}`", quoted_for_shell(program),
                    quoted_for_shell(study.folder().string())));
    return train::kInterruptedExitCode;
  }
  if (!outcome.best)
    fail(ErrorKind::data, "no trial has a result; `{} tune show {}` says why", program,
         quoted_for_shell(study.folder().string()));
  if (options.json)
    fmt::print("{}", study_json(study.settings(), study.trials(), outcome.summary));
  else
    print_best(library, study, outcome, program);
  return 0;
}

void add_search_options(CLI::App* command, TuneOptions* options) {
  std::vector<std::string> searchers;
  for (const tune::SearcherEntry& entry : tune::searcher_entries()) searchers.push_back(entry.name);
  command
      ->add_option("--space", options->space,
                   "TOML file with the ranges to search; default: the keys that decide the most, around the recipe")
      ->type_name("FILE");
  command
      ->add_option("--set-range", options->ranges,
                   "A key and where to search it: log:1e-4:1, float:0:0.99, int:16:256, log-int:16:1024, bool or "
                   "choice:A,B; repeatable")
      ->type_name("KEY=RANGE")
      ->allow_extra_args(false);
  command
      ->add_option("--propose", options->request.proposals,
                   fmt::format("What weft proposes to search: {}; several behind commas, beside --set-range, too; "
                               "default without ranges: training",
                               fmt::join(tune::proposal_names(), ", ")))
      ->type_name("NAME")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--set", options->set, "Any key of the recipe, as for `weft train`; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--objective", options->request.objective,
                      "What is to become better, such as validation_accuracy; further ones behind commas: parameters, "
                      "memory, size, latency, seconds; default: what the task is decided by");
  command
      ->add_option("--constraint", options->request.constraints,
                   "What trials keep to, such as 'memory <= 800MB' or 'parameters <= 100k'; repeatable")
      ->type_name("BOUND")
      ->allow_extra_args(false);
  command->add_option("--searcher", options->request.searcher,
                      fmt::format("{}; default: auto; nsga2 for several objectives, sobol for a population",
                                  fmt::join(searchers, ", ")));
  command
      ->add_option("--scheduler", options->request.scheduler,
                   fmt::format("{}", fmt::join(tune::scheduler_names(), ", ")))
      ->capture_default_str();
  command->add_option("--least-epochs", options->request.least_epochs, "With a scheduler: of each trial's first round")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  command->add_option("--reduction", options->request.reduction, "With a scheduler: one trial of so many goes on")
      ->check(CLI::Range(int64_t{2}, int64_t{100}))
      ->capture_default_str();
  command->add_option(
      "--percentile", options->request.percentile,
      "With the scheduler percentile: a trial ends early that does worse than the best so many % of the "
      "others did; default: 25");
  command->add_option("--seed", options->request.seed, "Of the search; that of the trials is the recipe's")
      ->check(CLI::Range(int64_t{0}, int64_t{9'000'000'000'000'000}))
      ->capture_default_str();
  command
      ->add_option("--in-order", options->request.in_order,
                   "So many trials at a time, and each is chosen by the results of those before, whichever ends first: "
                   "the same study on any machines; default: by all results that are there")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
  command->add_option("--threads", options->request.threads, "Of each trial")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}))
      ->capture_default_str();
}

}  // namespace

void add_tune(CLI::App& app, Action& action, const Library& library, const std::string& program) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand("tune", "Search the keys of a recipe for the best model");
  command->require_subcommand(0, 1);
  command->add_option("RECIPE", options->recipe, "TOML file, or a name from `weft recipes`")->type_name("RECIPE|FILE");
  add_search_options(command, options.get());
  command
      ->add_option("--data", options->data,
                   "In place of a recipe: data for which weft chooses one, as `weft init` does")
      ->type_name("SPEC");
  command->add_option("--trials", options->trials, fmt::format("Of the study in all; default: {}", kTrials))
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  command->add_option("--time", options->time, "For the search, such as 30m");
  command
      ->add_option(
          "--workers", options->workers,
          "Trials at a time on this host; a resumed study keeps it; default: the cores over --threads; 0 with --serve: "
          "all train elsewhere")
      ->check(CLI::Range(int64_t{0}, int64_t{1024}));
  command
      ->add_option("--serve", options->serve,
                   "Let workers on other hosts train trials, too: listen for `weft tune worker` at this address; "
                   ":PORT for all addresses of this host")
      ->type_name("HOST:PORT");
  command->add_option("--lost-after", options->lost_after, kLostAfterHelp);
  command
      ->add_option("--study", options->study,
                   "Folder of the study, which several processes may work on; default: studies/RECIPE-N")
      ->type_name("DIR");
  command
      ->add_option("--storage", options->storage,
                   "SQLite file that gets the study in Optuna's tables as well, for optuna-dashboard; a resumed study "
                   "keeps it")
      ->type_name("FILE");
  command->add_option("--resume", options->resume, "Go on with this study")->type_name("DIR");
  command->add_flag("--quiet", options->quiet, "No progress");
  command->add_flag("--json", options->json, "Print the study as JSON");
  command->callback([options, command, program, &action, &library] {
    for (const CLI::Option* option : command->get_options())
      if (option->count() > 0) options->given.push_back(option->get_name());
    if (!action) action = [options, program, &library] { return tune_command(library, *options, program); };
  });

  add_tune_worker(*command, action, library, program);
  add_tune_trainer(*command, action, library, program);
  add_tune_show(*command, action, library);
}

}  // namespace weft::cli
