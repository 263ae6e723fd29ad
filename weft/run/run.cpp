#include "weft/run/run.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/seal.h"
#include "weft/comm/exchange.h"
#include "weft/comm/host_share.h"
#include "weft/comm/measure.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/data/open_dataset.h"
#include "weft/graph/text.h"
#include "weft/plan/plan_json.h"
#include "weft/program/arena_limit.h"
#include "weft/program/autotune.h"
#include "weft/program/chosen_kernels.h"
#include "weft/program/decisions.h"
#include "weft/program/prepared_run.h"
#include "weft/program/process_memory.h"
#include "weft/program/same_run.h"
#include "weft/program/shared_state.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/copies.h"
#include "weft/run/long_texts.h"
#include "weft/run/resume_point.h"
#include "weft/run/run_changes.h"
#include "weft/run/run_directory.h"
#include "weft/run/run_records.h"
#include "weft/run/run_summary.h"
#include "weft/run/weights_file.h"
#include "weft/spec/recipe.h"
#include "weft/step/metrics/entries.h"
#include "weft/train/epoch.h"
#include "weft/train/fit.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRanksKey = "ranks";

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

/// That it had when it was last begun or gone on with; 1 where that is not known.
int ranks_of_run(const RunDirectory& directory) {
  std::error_code code;
  if (!fs::exists(directory.plan(), code)) return 1;
  const nlohmann::json plan = nlohmann::json::parse(read_text(directory.plan()), nullptr, /*allow_exceptions=*/false);
  return plan.is_object() ? plan.value(kRanksKey, 1) : 1;
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

/// Of several ranks each has its loaders; those that keep the run's directory have it too.
class RunLoop {
 public:
  RunLoop(program::PreparedRun& run, const RunDirectory* directory, const RunOptions& options,
          const fs::path& checkpoint, bool has_changes = false)
      : run_(run),
        directory_(directory),
        options_(options),
        rss_before_(start_measuring()),
        resume_point_(resume_point_of(run, checkpoint)) {
    if (has_changes) continue_changed();
    if (run.ranks != nullptr) program::require_same(run.ranks, program::traits_of(run, resume_point_.state));
    comm::on_all_ranks(run.ranks, "loaders of the data", [&] { open(); });
    reserve_arena();
    run.make_executors();  // allocates: what does not fit fails here
  }

  RunOutcome train() {
    const train::FitInputs inputs{
        run_.spec,       run_.training,         run_.evaluation, resume_point_.state,
        *training_data_, test_data_.get(),      run_.ranks,      run_.runtime.collectives().get(),
        run_.library,    validation_data_.get()};
    RunOutcome outcome;
    try {
      train::Hooks hooks = records_ ? records_->hooks() : train::Hooks();
      hooks.stop_requested = options_.stop_requested;
      const train::FitResult result = train::fit(inputs, resume_point_.manifest.position, hooks);
      outcome.finished = result.finished;
      outcome.steps_done = result.position.step;
      if (outcome.finished && validation_data_ && test_data_) outcome.finished = measure_test_data(inputs, hooks);
      outcome.summary = summary_of(run_, result.position, resume_point_.manifest, resume_point_.state, rss_before_);
      if (records_) records_->add_times(outcome.summary);
      outcome.summary.damaged_samples = damaged_samples();
      if (records_) records_->list_damaged_samples();
      outcome.summary.rank_step_seconds = result.rank_step_seconds;
    } catch (const Error& error) {
      if (records_) records_->end_line();
      if (error.kind() != ErrorKind::numeric || !records_) throw;
      const std::string message = error.what() + records_->last_good();
      if (dynamic_cast<const comm::SharedError*>(&error) != nullptr) throw comm::SharedError(error.kind(), message);
      throw Error(error.kind(), message);
    }
    if (!records_) return outcome;
    records_->end_line();
    if (outcome.finished) write_atomically(directory_->summary(), print_summary(outcome.summary));
    outcome.directory = directory_->path();
    return outcome;
  }

 private:
  /// The place of the next step is another one in another course, and a run that had ended goes on.
  void continue_changed() {
    Manifest& manifest = resume_point_.manifest;
    manifest.spec_hash = spec::spec_hash(run_.spec, run_.library);
    step::Position& position = manifest.position;
    std::tie(position.epoch, position.step_in_epoch) = run_.course.place_of(position.step);
    position.ended = "";
  }

  static int64_t start_measuring() {
    program::reset_peak_resident_bytes();
    return program::resident_bytes();
  }

  /// Once, with the weights that the validation part chose. False where a stop was requested during it: a resumed run
  /// does it again.
  bool measure_test_data(const train::FitInputs& inputs, const train::Hooks& hooks) {
    const int64_t last_step = resume_point_.manifest.position.step;
    const std::string told = comm::decided_by_first(run_.ranks, "best checkpoint", [&] {
      return std::to_string(resume_point_.manifest.best.value_or(BestCheckpoint{.step = last_step}).step);
    });
    const int64_t best_step = std::stoll(told);
    State best;
    if (best_step != last_step) {
      comm::on_all_ranks(run_.ranks, "best checkpoint", [&] {
        if (!comm::is_first(run_.ranks)) {
          best = step::initial_state(run_.step, static_cast<uint64_t>(run_.spec.seed));
          return;
        }
        const CheckpointStore store(directory_->checkpoints(), run_.spec.checkpoint.keep);
        best = store.read_best(/*with_optimizer=*/true).state;
      });
      program::take_first_state(run_.ranks, best);
    }
    const auto metrics = step::metrics_of(run_.library, run_.spec.metrics, run_.run_data.description.info.task);
    const train::Evaluation measured =
        train::evaluate_epoch(inputs, best_step == last_step ? resume_point_.state : best, *test_data_, hooks, metrics);
    if (!measured.finished) return false;
    step::EpochMetrics& last =
        resume_point_.manifest.last_epoch.emplace(resume_point_.manifest.last_epoch.value_or(step::EpochMetrics{}));
    last.test_loss = measured.loss;
    last.test_metrics = measured.metrics;
    if (records_)
      records_->on_test(
          {.step = last_step, .checkpoint_step = best_step, .loss = measured.loss, .metrics = measured.metrics});
    return true;
  }

  /// As much on all ranks, whose evaluations may differ by a sample.
  void reserve_arena() {
    if (run_.ranks == nullptr) return;
    auto most = static_cast<double>(run_.arena->bytes());
    comm::all_reduce_max(*run_.ranks, {&most, 1}, "memory of the steps");
    run_.arena->reserve(static_cast<int64_t>(most));
  }

  void open() {
    const spec::DataDescription& description = run_.run_data.description;
    training_data_ = std::make_unique<data::Loader>(
        *run_.run_data.training, program::training_loader_options(run_.spec, description, run_.share, run_.library));
    const auto open_evaluated = [&](const std::unique_ptr<data::Dataset>& dataset) {
      return dataset ? std::make_unique<data::Loader>(
                           *dataset, program::evaluation_loader_options(run_.spec, description, run_.share))
                     : nullptr;
    };
    validation_data_ = open_evaluated(run_.run_data.validation);
    test_data_ = open_evaluated(run_.run_data.test);
    if (directory_ == nullptr) return;
    records_ = std::make_unique<RunRecords>(run_, *directory_, options_, resume_point_);
    records_->on_initial_weights();
  }

  /// Of all ranks, each of which reads its share.
  int64_t damaged_samples() const {
    auto found = static_cast<double>(run_.run_data.damaged_samples());
    if (run_.ranks != nullptr) comm::all_reduce_sum(*run_.ranks, {&found, 1}, "damaged samples");
    return static_cast<int64_t>(found);
  }

  program::PreparedRun& run_;
  const RunDirectory* directory_;
  const RunOptions& options_;
  int64_t rss_before_;
  ResumePoint resume_point_;
  std::unique_ptr<data::Loader> training_data_, validation_data_, test_data_;
  std::unique_ptr<RunRecords> records_;
};

/// Whether it is asked for, of classes, and the model brings a loss of its own.
bool ignores_label_smoothing(const program::PreparedRun& run) {
  const auto& nodes = run.step.graph.nodes();
  const bool smooths = spec::mixes(run.spec.augment) || std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
                         return node.op->name == "cross_entropy";
                       });
  const data::TargetKind targets = run.run_data.description.info.target_kind();
  return run.spec.loss.label_smoothing > 0 && targets != data::TargetKind::values && !smooths;
}

/// What there is to say about the data's files.
void note_files(const program::PreparedRun& run, const RunOptions& options) {
  if (!options.note) return;
  if (const std::string note = note_of_long_texts(run.step.graph, *run.run_data.training); !note.empty())
    options.note(note);
  std::vector<std::string> told = {run.run_data.training->info().note};
  for (const data::Dataset* evaluated : run.run_data.evaluated()) told.push_back(evaluated->info().note);
  for (size_t at = 0; at < told.size(); ++at)
    if (!told[at].empty() && std::find(told.begin(), told.begin() + static_cast<std::ptrdiff_t>(at), told[at]) ==
                                 told.begin() + static_cast<std::ptrdiff_t>(at))
      options.note(told[at]);
  for (const std::string& line : program::describe_missing_classes(run.run_data)) options.note(line);
  if (const int64_t uncached = run.run_data.training->uncached_bytes(); uncached > 0)
    options.note(fmt::format(
        "of the decoded pictures {} find no place in memory and are decoded in every epoch; pictures that `weft pack "
        "--size` has made smaller take less time",
        human_bytes(static_cast<double>(uncached))));
}

/// Where there is something to write: nowhere on ranks but the first.
RunOptions options_of_rank(const RunOptions& options) {
  RunOptions own = options;
  if (comm::is_first(options.ranks)) return own;
  own.progress = nullptr;
  own.note = {};
  own.tensorboard = false;
  return own;
}

/// All that there is to say of a new run before it begins.
void note_beginning(program::PreparedRun& run, const RunOptions& options) {
  if (!options.note) return;
  if (run.precision_times) options.note(program::describe(*run.precision_times));
  if (run.spec.precision == "f16" && !run.device->computes_fast(DType::f16))
    options.note(
        "precision f16: on this CPU kernels compute in f32 and store f16, for less memory with large batches; bf16 and "
        "f32 "
        "are faster");
  if (const int64_t cores = available_cores(); run.spec.virtual_ranks > 0 && run.spec.threads < cores)
    options.note(
        fmt::format("virtual_ranks = {}: each rank computes with {} of {} cores; --threads N takes more, and is part "
                    "of what decides the weights",
                    run.spec.virtual_ranks, run.spec.threads, cores));
  note_files(run, options);
  if (!run.spec.init.empty())
    if (const std::string note =
            note_of_other_classes(run.spec, run.run_data.description.info, describe_weights(run.spec.init));
        !note.empty())
      options.note(note);
  if (run.spec.schedule.name == "plateau" && run.spec.schedule.monitor.starts_with("test_"))
    options.note(
        fmt::format("schedule.monitor = '{}' lets the test data decide over the training, so that they no longer "
                    "tell how well it does on new data; set validation=0.1 and schedule.monitor=validation_{}",
                    run.spec.schedule.monitor, run.spec.schedule.monitor.substr(5)));
  for (const std::string& key :
       spec::keys_without_effect(run.spec, run.run_data.description.info.target_kind(), run.library))
    options.note(key + " has no effect");
  const std::string twice = program::describe_recompute(run.training.compiled(run.largest()), run.spec);
  if (!twice.empty()) options.note(twice);
  const std::string offloaded = program::describe_offload(run.training.compiled(run.largest()), run.spec);
  if (!offloaded.empty()) options.note(offloaded);
  if (ignores_label_smoothing(run))
    options.note(fmt::format("loss.label_smoothing = {} with '{}', which has a loss of its own, has no effect",
                             run.spec.loss.label_smoothing, run.spec.model.name));
}

/// The run's directory with the lock on it, on the ranks that keep it.
struct HeldDirectory {
  std::optional<RunDirectory> directory;
  std::shared_ptr<void> lock;
  void take(const RunDirectory& taken) {
    directory = taken;
    lock = taken.lock();
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
  });
  take_over_weights(library, resolved, options);
  comm::on_all_ranks(ranks, "tuning", [&] {
    if (comm::is_first(ranks))
      tuning = program::tuning_of(library.device, options.autotune, resolved.threads, options.note);
  });
  resolved.threads = comm::common_threads(ranks, resolved.threads);
  const std::unique_ptr<program::PreparedRun> prepared =
      program::prepare_run(library, resolved, tuning, options.note, ranks, resolved.cluster, resolved.cost_profile);
  program::PreparedRun& run = *prepared;
  HeldDirectory held;
  std::optional<FreshDirectoryGuard> guard;
  comm::on_all_ranks(ranks, "run directory", [&] {
    if (comm::is_first(ranks)) program::keep_measured(library.device, *run.device, options.note);
    note_beginning(run, options);
    run.spec.data = data::with_absolute_paths(library.data, run.spec.data);
    if (!spec::validation_share(spec)) run.spec.validation = program::validation_data_spec(library, run.spec);
    if (!spec.init.empty()) run.spec.init = fs::absolute(spec.init).lexically_normal().string();
    for (std::string* file : {&run.spec.offload, &run.spec.cluster})
      if (!file->empty()) *file = fs::absolute(*file).lexically_normal().string();
    run.spec.cost_profile = program::with_absolute_path(run.spec.cost_profile);
    if (!keeps) return;
    held.take(RunDirectory::create(path, spec.model.name, run.run_data.description.info.name));
    guard.emplace(held.get());  // after the lock: what another run writes there is not taken back
    write_atomically(held.directory->spec(), spec::print_recipe(run.spec, library));
    write_description(*held.directory, run);
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
  if (threads == 0 && ranks_of_run(directory) != comm::number_of(options.ranks)) threads = available_cores();
  if (threads > 0) spec.threads = threads;
  const auto note = [&](const std::string& line) {
    if (options.note) options.note(line);
  };
  const CheckpointStore store(directory.checkpoints(), spec.checkpoint.keep);
  store.put_back();
  if (const std::optional<Checkpoint> checkpoint = store.read_newest(note)) {
    require_same_spec(directory, *checkpoint, old_spec, library);
    const step::Position& position = checkpoint->manifest.position;
    resumption.step = position.step;
    const std::optional<Summary> summary = finished_summary(directory, spec, position);
    if (summary && resumption.changes.empty()) {
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
  return nlohmann::json{{"spec", spec::print_recipe(resumption.spec, entries)},
                        {"old_hash", resumption.old_hash},
                        {"has_changes", !resumption.changes.empty()},
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
  if (root.at("has_changes").get<bool>()) resumption.changes.emplace_back();
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
  if (ranks != nullptr && options.copies) copy_newest(*ranks, path, keeps);
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
  });
  return RunLoop(*prepared, held.get(), options, resumption.checkpoint, !resumption.changes.empty()).train();
}

}  // namespace weft::run
