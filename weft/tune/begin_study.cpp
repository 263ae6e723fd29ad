#include "weft/tune/begin_study.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/data/open_dataset.h"
#include "weft/program/run_data.h"
#include "weft/run/run_changes.h"
#include "weft/spec/recipe_keys.h"
#include "weft/step/metrics/entries.h"
#include "weft/tune/model_check.h"
#include "weft/tune/ranges/default_space.h"
#include "weft/tune/ranges/proposed_search.h"
#include "weft/tune/ranges/recipe_space.h"
#include "weft/tune/space/random.h"
#include "weft/tune/trials/trial_plan.h"

namespace weft::tune {

namespace fs = std::filesystem;

namespace {

/// Files that the recipe names, as they are seen from any folder.
void keep_absolute_paths(StudySettings& settings, const spec::RunSpec& spec, const Library& library) {
  const auto set = [&](const char* key, const std::string& from, const std::string& to) {
    if (from != to) settings.set.push_back(fmt::format("{}={}", key, to));
  };
  set("data", spec.data, data::with_absolute_paths(library.data, spec.data));
  if (!spec::validation_share(spec)) set("validation", spec.validation, program::validation_data_spec(library, spec));
  const auto set_file = [&](const char* key, const std::string& from) {
    std::error_code code;
    if (!from.empty() && fs::exists(from, code)) set(key, from, fs::absolute(from).lexically_normal().string());
  };
  set_file("init", spec.init);
  set_file("offload", spec.offload);
  set_file("cluster", spec.cluster);
  set_file("cost_profile", spec.cost_profile);
}

/// "image_schedule.sizes" of "image_schedule.sizes=[8,16]"
std::string key_of_assignment(const std::string& assignment) { return assignment.substr(0, assignment.find('=')); }

/// The first objective that is measured on the validation part; null: none is.
const Objective* validated(const std::vector<Objective>& objectives) {
  const auto found = std::find_if(objectives.begin(), objectives.end(),
                                  [](const Objective& one) { return one.name.starts_with("validation_"); });
  return found == objectives.end() ? nullptr : &*found;
}

/// Error(usage) for a metric that runs of this recipe do not measure.
void require_measured(const std::vector<Objective>& objectives, const spec::RunSpec& spec, const std::string& task,
                      const Library& library) {
  std::vector<std::string> measured = {"train_loss", "validation_loss"};
  for (const MetricEntry& metric : step::metrics_of(library, spec.metrics, task)) {
    measured.push_back("validation_" + metric.name);
    if (metric.name == "accuracy") measured.emplace_back("train_accuracy");
  }
  for (const Objective& objective : objectives)
    if (objective.is_metric() && std::find(measured.begin(), measured.end(), objective.name) == measured.end())
      fail(ErrorKind::usage, "--objective {}: no run of this recipe measures it{}", objective.name,
           suggestion(objective.name, measured));
}

/// Sets a tenth of the training data aside where the recipe has no validation part, unless an assignment says that
/// there is none. What stands in the recipe alone is no such wish: the spec.toml of a run states every key.
void set_validation_aside(StudySettings& settings, spec::RunSpec& spec, const Library& library,
                          const std::function<void(const std::string&)>& note) {
  if (spec::has_validation(spec)) return;
  const auto given = std::find_if(settings.set.rbegin(), settings.set.rend(),
                                  [](const std::string& one) { return key_of_assignment(one) == "validation"; });
  if (given == settings.set.rend()) {
    settings.set.emplace_back("validation=0.1");
    note("a tenth of the training data is set aside to compare trials by: validation=0.1");
    spec = base_spec(settings, library);
  } else if (const Objective* objective = validated(settings.objectives)) {
    fail(ErrorKind::usage,
         "--set {} leaves no validation part, on which {} is measured; leave it away, or take --objective train_loss",
         *given, objective->name);
  }
}

/// Schedules come before training: where the batch changes during a run, no other one is proposed.
std::vector<std::string> proposals_of(const StudyRequest& request) {
  if (request.proposals.empty())
    return request.ranges.empty() ? std::vector<std::string>{"training"} : request.proposals;
  std::vector<std::string> names = request.proposals;
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) { return name == "schedules"; });
  return names;
}

/// What is already searched stays as it is, and so do the settings of its section.
void add_proposal(const ProposedSearch& proposal, StudySettings& settings, std::vector<RangeText>& ranges,
                  const std::function<void(const std::string&)>& note) {
  const auto is_searched = [&](const auto& matches) { return std::any_of(ranges.begin(), ranges.end(), matches); };
  const bool has_batch = is_searched([](const RangeText& one) { return one.key == "batch"; });
  const auto is_taken = [&](const std::string& section) {
    return (section == "batch_schedule" && has_batch) ||
           is_searched([&](const RangeText& one) { return spec::section_of(one.key) == section; });
  };
  for (const std::string& assignment : proposal.set) {
    if (is_taken(spec::section_of(key_of_assignment(assignment)))) continue;
    settings.set.push_back(assignment);
    note("proposed for all trials: " + assignment);
  }
  std::vector<RangeText> added;
  for (const RangeText& range : proposal.ranges) {
    const bool is_same = is_searched([&](const RangeText& one) { return one.key == range.key; });
    if (!is_same && !(has_batch && range.key.starts_with("batch_schedule."))) added.push_back(range);
  }
  for (const RangeText& range : added) {
    note("proposed: " + print_range(range));
    ranges.push_back(range);
  }
}

/// Whether all rounds end with an evaluation, where one follows each so many epochs and the last one.
bool are_measured(const SchedulerOptions& scheduler, int64_t every_epochs) {
  const std::vector<int64_t> rungs = rungs_of(scheduler, 0);  // other brackets have some of these
  return std::all_of(rungs.begin(), rungs.end(), [&](int64_t rung) {
    return rung == scheduler.most || (every_epochs > 0 && rung % every_epochs == 0);
  });
}

/// ", or --least-epochs 3" where that is a first round with which all rounds are measured.
std::string measured_rounds(SchedulerOptions scheduler, int64_t every_epochs) {
  if (every_epochs == 0) return "";
  scheduler.least = (scheduler.least + every_epochs - 1) / every_epochs * every_epochs;
  for (; scheduler.least < scheduler.most; scheduler.least += every_epochs)
    if (rungs_of(scheduler, 0).size() > 1 && are_measured(scheduler, every_epochs))
      return fmt::format(", or --least-epochs {}", scheduler.least);
  return "";
}

/// Error(usage) where trials would pause at epochs after which the recipe measures nothing to compare them by.
void require_measured_rounds(const StudySettings& settings, const spec::RunSpec& spec) {
  const SchedulerOptions& scheduler = settings.scheduler;
  const int64_t every = spec.evaluation.every_epochs;
  const Objective* objective = validated(settings.objectives);
  if (objective == nullptr || are_measured(scheduler, every)) return;
  fail(ErrorKind::usage,
       "--scheduler {} compares trials after {} epochs, and the recipe measures {} {}; set evaluation.every_epochs=1{}",
       scheduler.name, fmt::join(rungs_of(scheduler, 0), ", "), objective->name,
       every > 0 ? fmt::format("every {} epochs", every) : "after the last epoch only",
       measured_rounds(scheduler, every));
}

/// Error(usage) where no trial could train, and always for the same reason: then it lies in the recipe, and not in the
/// points that a search would try.
void require_trainable(const StudySettings& settings, const Library& library) {
  constexpr int64_t kPoints = 16;
  const Space& space = settings.space;
  std::string trouble;
  for (int64_t number = 0; number < kPoints; ++number) {
    Random random(0, number);
    Point point(space.size());
    for (size_t index = 0; index < space.size(); ++index)
      point[index] = space.from_unit(index, number == 0 ? 0.5 : random.uniform());
    space.drop_inactive(point);
    try {
      plan_trial(trial_spec(settings, space.values(point), library), library);
      return;
    } catch (const Error& error) {
      if (number > 0 && error.what() != trouble) return;
      trouble = error.what();
    }
  }
  fail(ErrorKind::usage, "no trial of this recipe could train: {}", trouble);
}

std::string default_searcher(const StudySettings& settings, const std::string& scheduler) {
  // Members of a population begin spread evenly, whatever the first of them have reached by then.
  if (scheduler == "population") return "sobol";
  return settings.objectives.size() > 1 ? "nsga2" : "auto";
}

}  // namespace

StudySettings study_settings(const Library& library, const StudyRequest& request,
                             const std::function<void(const std::string&)>& note) {
  StudySettings settings{.space = {},
                         .recipe = request.recipe,
                         .set = request.set,
                         .objectives = {},
                         .constraints = request.constraints,
                         .searcher = request.searcher,
                         .seed = request.seed,
                         .threads = request.threads,
                         .in_order = request.in_order};
  spec::RunSpec spec = base_spec(settings, library);
  const data::DatasetInfo info = data::open_dataset(library.data, spec.data, data::Split::train)->info();
  const std::string& task = info.task;
  const std::string objective =
      request.objective.empty() ? "validation_" + task_entry(library, task).decided_by : request.objective;
  settings.objectives = parse_objectives(objective, library);
  require_measured(settings.objectives, spec, task, library);
  // Before proposals: they resolve the recipe, and that may watch the validation part.
  set_validation_aside(settings, spec, library, note);
  std::vector<RangeText> ranges = request.ranges;
  for (const std::string& name : proposals_of(request)) {
    add_proposal(propose(name, spec, info, library), settings, ranges, note);
    spec = base_spec(settings, library);
  }
  settings.space = recipe_space(ranges, spec, library);
  const std::optional<size_t> batch = settings.space.find("batch");
  if (spec.measured.batch && (!batch || settings.space[*batch].condition))
    fail(
        ErrorKind::usage,
        "batch = 'auto' leaves the memory of trials open, by which they are packed; search the batch, or set a number");
  keep_absolute_paths(settings, spec, library);
  for (const std::string& text : request.constraints) parse_constraint(text);
  require_models(settings, ranges, info, library);
  if (settings.searcher.empty()) settings.searcher = default_searcher(settings, request.scheduler);
  make_searcher(settings.searcher,
                {.objectives = static_cast<int64_t>(settings.objectives.size()), .library = &library})
      ->check(settings.space);
  SchedulerOptions& scheduler = settings.scheduler;
  scheduler = {.name = request.scheduler,
               .least = request.least_epochs,
               .most = spec::begun_epochs(spec),
               .reduction = request.reduction};
  if (request.percentile && scheduler.name != "percentile")
    fail(ErrorKind::usage, "--percentile is of the scheduler percentile, not of '{}'; leave it away, or take that one",
         scheduler.name);
  scheduler.percentile = request.percentile.value_or(scheduler.percentile);
  check_scheduler(scheduler);
  require_measured_rounds(settings, spec);
  if (settings.in_order > 0 && scheduler.name != "none")
    fail(
        ErrorKind::usage,
        "--in-order is for trials that all train to their end, and the scheduler '{}' decides by what has ended first; "
        "leave one of the two away",
        scheduler.name);
  if (scheduler.name == "population")
    for (const Dimension& dimension : settings.space.dimensions())
      if (!run::is_changeable(dimension.name))
        fail(ErrorKind::usage,
             "'{}' cannot change while a trial trains, which the scheduler 'population' does; leave it away, or take "
             "another scheduler. These can change: {}",
             dimension.name, fmt::join(run::changeable_keys(), ", "));
  if (settings.space.find("epochs") && scheduler.name != "none")
    fail(ErrorKind::usage, "epochs are searched, and the scheduler '{}' deals them out: leave one of the two away",
         scheduler.name);
  require_trainable(settings, library);
  return settings;
}

}  // namespace weft::tune
