#include "weft/run/run.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/seal.h"
#include "weft/comm/host_share.h"
#include "weft/comm/measure/measure.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/data/open_dataset.h"
#include "weft/graph/text.h"
#include "weft/onnx/file/model_file.h"
#include "weft/onnx/file/model_writer.h"
#include "weft/plan/plan_json.h"
#include "weft/program/autotune.h"
#include "weft/program/chosen_kernels.h"
#include "weft/program/decisions.h"
#include "weft/program/prepared_run.h"
#include "weft/run/beginning_notes.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/chosen_strategy.h"
#include "weft/run/copies.h"
#include "weft/run/policies/choose_policies.h"
#include "weft/run/prediction_file.h"
#include "weft/run/resume_point.h"
#include "weft/run/run_changes.h"
#include "weft/run/run_directory.h"
#include "weft/run/run_loop.h"
#include "weft/run/weights_file.h"
#include "weft/spec/recipe.h"
#include "weft/step/sharded_states.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

/// Takes a fresh run directory back unless training begins.
class FreshDirectoryGuard {
 public:
  explicit FreshDirectoryGuard(const RunDirectory* directory) : directory_(directory) {}
  ~FreshDirectoryGuard() {
    if (directory_ != nullptr) directory_->remove();
  }
  FreshDirectoryGuard(const FreshDirectoryGuard&) = delete;
  FreshDirectoryGuard& operator=(const FreshDirectoryGuard&) = delete;
  void keep() { directory_ = nullptr; }

 private:
  const RunDirectory* directory_;
};

void write_description(const RunDirectory& directory, program::PreparedRun& run) {
  const CompiledStep& compiled = run.training.compiled(run.largest());
  write_atomically(directory.data(), spec::print_data_description(run.run_data.description));
  nlohmann::json plan = to_json(compiled.plan, compiled.graph);
  plan["measured_kernels"] = program::chosen_kernels_json(*run.device);
  plan[kRanksKey] = comm::number_of(run.ranks);
  plan["costs"] = run.cost_profile.costs->describe();
  // First: a run that has a plan has what it was planned by.
  if (!run.cost_profile.text.empty()) write_atomically(directory.cost_profile(), with_seal(run.cost_profile.text));
  add_seal(plan);
  write_atomically(directory.plan(), plan.dump(1) + "\n");
  write_atomically(directory.graph(), print_graph(compiled.graph));
  if (const ConstantTable constants = find_constants(compiled.graph); !constants.empty())
    write_constants(constants_path(directory.graph()), constants);
  if (run.spec.cluster.empty() && !run.runtime.cluster().empty())
    write_atomically(directory.cluster(), with_seal(run.runtime.cluster()));
}

void require_same_spec(const RunDirectory& directory, const Checkpoint& checkpoint, const spec::RunSpec& spec,
                       const Entries& entries) {
  const std::string hash = spec::spec_hash(spec, entries), &of_checkpoint = checkpoint.manifest.spec_hash;
  if (of_checkpoint == hash || changes_lead(directory.changes(), of_checkpoint, hash)) return;
  fail(ErrorKind::data, "checkpoint '{}' belongs to another spec.toml; put the original one back, or start a new run",
       checkpoint.path.string());
}

/// The summary of a run whose last step is done; nullopt where there is more to do.
std::optional<Summary> finished_summary(const RunDirectory& directory, const spec::RunSpec& spec,
                                        const step::Position& position) {
  std::error_code code;
  const bool is_over = !position.ended.empty() || position.epoch >= spec::begun_epochs(spec);
  if (!is_over || !fs::exists(directory.summary(), code)) return std::nullopt;
  return parse_summary(read_text(directory.summary()));
}

/// Nothing to compare with where the run was cut off before it had described its data.
void require_same_data(const RunDirectory& directory, const program::PreparedRun& run) {
  std::error_code code;
  if (!fs::exists(directory.data(), code)) return;
  const std::string difference = spec::difference_of(directory.read_data(), run.run_data.description);
  if (difference.empty()) return;
  fail(ErrorKind::data, "the data '{}' changed since '{}' began: {}; put the original data back, or start a new run",
       run.spec.data, directory.path().string(), difference);
}

/// Only the first rank speaks.
RunOptions options_of_rank(const RunOptions& options) {
  RunOptions own = options;
  if (comm::is_first(options.ranks)) return own;
  own.progress = nullptr;
  own.note = {};
  return own;
}

/// The run's directory with the lock on it, on the ranks that keep it.
struct HeldDirectory {
  std::optional<RunDirectory> directory;
  std::shared_ptr<void> lock;
  void take(const RunDirectory& taken) {
    directory = taken;
    if (lock.use_count() == 0) lock = taken.lock();  // the lock points to nothing, and is held all the same
    taken.remove_temporaries();
  }
  const RunDirectory* get() const { return directory ? &*directory : nullptr; }
};

/// What belongs to the weights that the run starts from, on all ranks as the first one reads it.
void take_over_weights(const Library& library, spec::RunSpec& spec, const RunOptions& options) {
  if (spec.init.empty()) return;
  const std::string text = comm::decided_by_first(options.ranks, "initial weights", [&] {
    for (const std::string& line : take_over(library, spec, describe_weights(spec.init)))
      if (options.note) options.note(line);
    return spec::print_recipe(spec, library);
  });
  if (!comm::is_first(options.ranks)) spec::apply_recipe(spec, text, "spec.toml", library);
}

/// A model that a file describes: the run keeps a copy, and needs the file no more.
void keep_model(const RunDirectory& directory, spec::RunSpec& spec) {
  const auto file = spec.model.options.find(kModelFileOption);
  if (file == spec.model.options.end()) return;
  onnx::write_model(directory.model_file(), onnx::read_model(file->second));
  file->second = fs::absolute(directory.model_file()).lexically_normal().string();
}

}  // namespace

RunOutcome start_run(const Library& library, const spec::RunSpec& spec, const fs::path& path, const RunOptions& given) {
  const RunOptions options = options_of_rank(given);
  comm::Communicator* ranks = options.ranks;
  spec::RunSpec resolved = spec;
  Tuning tuning;
  const bool keeps = keeps_directory(ranks, path, options.copies);
  comm::on_all_ranks(ranks, "recipe", [&] {
    if (keeps) RunDirectory::require_free(path);
    spec::resolve(resolved, library);
    step::require_sharers(resolved, comm::number_of(ranks));
  });
  take_over_weights(library, resolved, options);
  choose_strategy(library, resolved, ranks, options.note);
  comm::on_all_ranks(ranks, "tuning", [&] {
    if (comm::is_first(ranks))
      tuning = program::tuning_of(library.device, options.autotune, resolved.threads, options.note);
  });
  resolved.threads = comm::common_threads(ranks, resolved.threads);
  Policies policies;
  const PolicyInputs policy_inputs{
      .library = library,
      .tuning = tuning,
      .ranks = ranks,
      .note = options.note,
      .stop_requested = options.stop_requested,
      .initial_state = [](const program::PreparedRun& run) { return resume_point_of(run, {}).state; }};
  const Measuring measuring = choose_policies(policy_inputs, resolved, policies);
  if (measuring == Measuring::stopped) return {};
  const std::unique_ptr<program::PreparedRun> prepared =
      program::prepare_run(library, resolved, tuning, options.note, ranks, resolved.cluster, resolved.cost_profile);
  program::PreparedRun& run = *prepared;
  HeldDirectory held;
  std::optional<FreshDirectoryGuard> guard;
  comm::on_all_ranks(ranks, "run directory", [&] {
    if (comm::is_first(ranks)) program::keep_measured(library.device, *run.device, options.note);
    note_beginning(library, run, options);
    run.spec.data = data::with_absolute_paths(library.data, run.spec.data);
    if (!spec::validation_share(spec)) run.spec.validation = program::validation_data_spec(library, run.spec);
    if (!spec.init.empty()) run.spec.init = fs::absolute(spec.init).lexically_normal().string();
    for (std::string* file : {&run.spec.offload, &run.spec.cluster})
      if (!file->empty()) *file = fs::absolute(*file).lexically_normal().string();
    run.spec.cost_profile = program::with_absolute_path(run.spec.cost_profile);
    if (!keeps) return;
    held.take(RunDirectory::create(path, spec.model.name, run.run_data.description.info.name));
    guard.emplace(held.get());  // after the lock: what another run writes there is not taken back
    keep_model(*held.directory, run.spec);
    write_atomically(held.directory->spec(), spec::print_recipe(run.spec, library));
    if (measuring == Measuring::done) write_atomically(held.directory->policy(), print_policies(policies));
    write_description(*held.directory, run);
    write_prediction(*held.directory, run, options.note);
  });
  RunLoop loop(run, held.get(), options, {});
  if (guard) guard->keep();
  return loop.train();
}

namespace {

/// What a run that goes on is told by the first rank, which reads its directory.
struct Resumption {
  spec::RunSpec spec;
  std::string old_hash = {};            // of the recipe before the changes
  std::vector<KeyChange> changes = {};  // on the first rank
  int64_t step = 0;                     // steps done, on the first rank
  fs::path checkpoint;                  // empty: from the first step
  Tuning tuning;
  std::string cluster = {};                // as in the spec, or what was measured on the same hosts
  std::string cost_profile = {};           // as in the spec, or the file that the run keeps
  std::optional<RunOutcome> outcome = {};  // of a run that is finished already
};

Resumption resumption_of(const Library& library, const RunDirectory& directory, int64_t threads,
                         const std::vector<std::string>& changes, const RunOptions& options) {
  Resumption resumption{.spec = directory.read_spec(library), .checkpoint = {}, .tuning = {}};
  spec::RunSpec& spec = resumption.spec;
  const spec::RunSpec old_spec = spec;
  resumption.old_hash = spec::spec_hash(old_spec, library);
  if (!changes.empty()) resumption.changes = change_spec(spec, changes, directory.path(), library);
  if (spec.virtual_ranks > 0 && threads > 0 && threads != spec.threads)
    fail(ErrorKind::usage,
         "--threads {}: '{}' has virtual ranks and began with {} threads per rank, by which some sums are divided; "
         "leave --threads away",
         threads, directory.path().string(), spec.threads);
  if (spec.virtual_ranks > 0) threads = spec.threads;
  // Threads are those of each rank.
  if (threads == 0 && directory.ranks() != comm::number_of(options.ranks)) threads = available_cores();
  if (threads > 0) spec.threads = threads;
  const auto note = [&](const std::string& line) {
    if (options.note) options.note(line);
  };
  const CheckpointStore store(directory.checkpoints(), spec.checkpoint.keep);
  store.put_back();
  if (const std::optional<Checkpoint> checkpoint = store.check_newest(note)) {
    require_same_spec(directory, *checkpoint, old_spec, library);
    const step::Position& position = checkpoint->manifest.position;
    resumption.step = position.step;
    const std::optional<Summary> summary = finished_summary(directory, spec, position);
    const bool extends = std::any_of(resumption.changes.begin(), resumption.changes.end(),
                                     [](const KeyChange& change) { return can_extend(change.key); });
    if (summary && !extends) {
      note(fmt::format("'{}' is finished: this is its summary", directory.path().string()));
      resumption.outcome = {
          .directory = directory.path(), .finished = true, .steps_done = position.step, .summary = *summary};
      return resumption;
    }
    resumption.checkpoint = checkpoint->path;  // read again once the measuring of memory has begun
    store.set_damaged_aside(position.step);
  } else {
    note("no checkpoint yet: starting from the first step");
  }
  resumption.tuning = program::tuning_of_plan(directory.plan(), options.note);
  resumption.cost_profile = directory.chosen_cost_profile(spec);
  // Links that are measured anew may give another plan, which rounds otherwise.
  resumption.cluster = spec.cluster;
  if (spec.cluster.empty() && options.ranks != nullptr && fs::exists(directory.cluster()) &&
      comm::is_of_same_hosts(read_text(directory.cluster()), *options.ranks))
    resumption.cluster = directory.cluster().string();
  return resumption;
}

/// What the others must know of it.
std::string print(const Resumption& resumption, const Entries& entries) {
  nlohmann::json changes = nlohmann::json::array();
  for (const KeyChange& change : resumption.changes) changes.push_back({change.key, change.from, change.to});
  return nlohmann::json{{"spec", spec::print_recipe(resumption.spec, entries)},
                        {"old_hash", resumption.old_hash},
                        {"step", resumption.step},
                        {"changes", changes},
                        {"checkpoint", resumption.checkpoint.string()},
                        {"cluster", resumption.cluster},
                        {"cost_profile", resumption.cost_profile},
                        {"finished", resumption.outcome.has_value()}}
      .dump();
}

Resumption parse_resumption(const std::string& text, const Entries& entries) {
  const nlohmann::json root = nlohmann::json::parse(text);
  Resumption resumption;
  spec::apply_recipe(resumption.spec, root.at("spec").get<std::string>(), "spec.toml", entries);
  resumption.checkpoint = root.at("checkpoint").get<std::string>();
  resumption.old_hash = root.at("old_hash").get<std::string>();
  resumption.step = root.at("step").get<int64_t>();
  for (const auto& change : root.at("changes"))
    resumption.changes.push_back(
        {change.at(0).get<std::string>(), change.at(1).get<std::string>(), change.at(2).get<std::string>()});
  resumption.cluster = root.at("cluster").get<std::string>();
  resumption.cost_profile = root.at("cost_profile").get<std::string>();
  if (root.at("finished").get<bool>()) resumption.outcome.emplace().finished = true;
  return resumption;
}

/// Writes the changed recipe. The list of changes comes first: a checkpoint of the recipe before must still be known
/// where the process ends in between.
void keep_changes(const RunDirectory& directory, const Resumption& resumption, const program::PreparedRun& run,
                  const RunOptions& options) {
  if (run.course.total_steps() <= resumption.step)
    fail(ErrorKind::usage,
         "'{}' has done {} steps, and with these changes it ends after {}; give more --epochs, or a later end",
         directory.path().string(), resumption.step, run.course.total_steps());
  append_changes(directory.changes(), resumption.step, resumption.changes, resumption.old_hash,
                 spec::spec_hash(run.spec, run.library));
  write_atomically(directory.spec(), spec::print_recipe(run.spec, run.library));
  std::error_code code;
  fs::remove(directory.summary(), code);  // the run is no longer finished
  if (!options.note) return;
  std::string line;
  for (const KeyChange& change : resumption.changes)
    line += fmt::format("{}{} from {} to {}", line.empty() ? "" : ", ", change.key, change.from, change.to);
  options.note(fmt::format("the run goes on after step {} with {}", resumption.step, line));
}

}  // namespace

RunOutcome resume_run(const Library& library, const fs::path& path, int64_t threads, const RunOptions& given,
                      const std::vector<std::string>& changes) {
  const RunOptions options = options_of_rank(given);
  comm::Communicator* ranks = options.ranks;
  HeldDirectory held;
  Resumption resumption;
  const bool keeps = keeps_directory(ranks, path, options.copies);
  if (ranks != nullptr && options.copies) held.lock = copy_newest(*ranks, path, keeps, options.note);
  const std::string told = comm::decided_by_first(ranks, "run directory", [&] {
    held.take(RunDirectory::open(path));
    resumption = resumption_of(library, *held.directory, threads, changes, options);
    return print(resumption, library);
  });
  if (!comm::is_first(ranks)) resumption = parse_resumption(told, library);
  if (resumption.outcome) return *resumption.outcome;
  spec::RunSpec& spec = resumption.spec;
  spec.threads = comm::common_threads(ranks, spec.threads);
  const std::unique_ptr<program::PreparedRun> prepared = program::prepare_run(
      library, spec, resumption.tuning, options.note, ranks, resumption.cluster, resumption.cost_profile);
  comm::on_all_ranks(ranks, "run directory", [&] {
    if (!keeps) return;
    if (!comm::is_first(ranks)) held.take(RunDirectory::open(path));
    require_same_data(*held.directory, *prepared);
    if (!resumption.changes.empty()) keep_changes(*held.directory, resumption, *prepared, options);
    write_description(*held.directory, *prepared);
    if (!resumption.changes.empty() || !is_predicted_for(*held.directory, *prepared))
      write_prediction(*held.directory, *prepared, options.note);
  });
  return RunLoop(*prepared, held.get(), options, resumption.checkpoint, !resumption.changes.empty()).train();
}

}  // namespace weft::run
