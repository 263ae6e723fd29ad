#include "weft/train/run.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/progress.h"
#include "weft/data/open_dataset.h"
#include "weft/graph/text.h"
#include "weft/plan/plan_json.h"
#include "weft/train/arena_limit.h"
#include "weft/train/autotune.h"
#include "weft/train/checkpoint/store.h"
#include "weft/train/chosen_kernels.h"
#include "weft/train/fit.h"
#include "weft/train/initial_weights.h"
#include "weft/train/long_texts.h"
#include "weft/train/metrics_log.h"
#include "weft/train/prepared_run.h"
#include "weft/train/process_memory.h"
#include "weft/train/recipe.h"
#include "weft/train/run_directory.h"
#include "weft/train/run_summary.h"
#include "weft/train/tensorboard_log.h"
#include "weft/train/whitening.h"

namespace weft::train {

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

void write_description(const RunDirectory& directory, PreparedRun& run) {
  const CompiledStep& compiled = run.training.compiled(run.largest());
  write_atomically(directory.data(), print_data_description(run.run_data.description));
  nlohmann::json plan = to_json(compiled.plan, compiled.graph);
  plan["measured_kernels"] = chosen_kernels_json(run.backend);
  write_atomically(directory.plan(), plan.dump(1) + "\n");
  write_atomically(directory.graph(), print_graph(compiled.graph));
}

/// Where the run stands: the state with the manifest that belongs to it.
struct Standing {
  State state;
  Manifest manifest;
};

/// Weights that depend on the training images; whether there are any.
bool start_from_images(State& state, const PreparedRun& run) {
  data::LoaderOptions as_they_are = evaluation_loader_options(run.spec, run.run_data.description);
  as_they_are.batch = 1;
  as_they_are.workers = 0;
  const data::Loader images(*run.run_data.training, as_they_are);
  return start_whitening(state, run.step.parameters, images, static_cast<uint64_t>(run.spec.seed));
}

/// From the checkpoint, or, where the path is empty, from the first step.
Standing standing_of(const PreparedRun& run, const fs::path& checkpoint_path, const RunOptions& options) {
  if (checkpoint_path.empty()) {
    const auto seed = static_cast<uint64_t>(run.spec.seed);
    Standing standing{initial_state(run.step, seed), {}};
    if (!run.spec.init.empty()) {
      for (const std::string& line : load_weights(standing.state, run.step.parameters, run.spec.init, Head::may_differ))
        if (options.note) options.note(line);
      start_slots(run.step, standing.state);
    } else if (start_from_images(standing.state, run)) {
      start_slots(run.step, standing.state);
    }
    standing.manifest.spec_hash = spec_hash(run.spec);
    standing.manifest.seed = run.spec.seed;
    return standing;
  }
  Checkpoint checkpoint = read_checkpoint(checkpoint_path);
  return {std::move(checkpoint.state), std::move(checkpoint.manifest)};
}

void require_same_spec(const Checkpoint& checkpoint, const RunSpec& spec) {
  if (checkpoint.manifest.spec_hash == spec_hash(spec)) return;
  fail(ErrorKind::data, "checkpoint '{}' belongs to another spec.toml; put the original one back, or start a new run",
       checkpoint.path.string());
}

/// The summary of a run whose last step is done; nullopt where there is more to do.
std::optional<Summary> finished_summary(const RunDirectory& directory, const RunSpec& spec, const Position& position) {
  std::error_code code;
  if (position.epoch < begun_epochs(spec) || !fs::exists(directory.summary(), code)) return std::nullopt;
  return parse_summary(read_text(directory.summary()));
}

/// Nothing to compare with where the run was cut off before it had described its data.
void require_same_data(const RunDirectory& directory, const PreparedRun& run) {
  std::error_code code;
  if (!fs::exists(directory.data(), code)) return;
  const std::string difference = difference_of(directory.read_data(), run.run_data.description);
  if (difference.empty()) return;
  fail(ErrorKind::data, "the data '{}' changed since '{}' began: {}; put the original data back, or start a new run",
       run.spec.data, directory.path().string(), difference);
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The loop with all its hooks in one directory.
class RunInDirectory {
 public:
  RunInDirectory(PreparedRun& run, const RunDirectory& directory, const RunOptions& options, const fs::path& checkpoint)
      : run_(run),
        directory_(directory),
        options_(options),
        rss_before_(start_measuring()),
        standing_(standing_of(run, checkpoint, options)),
        store_(directory.checkpoints(), run.spec.checkpoint.keep),
        training_data_(*run.run_data.training, training_loader_options(run.spec, run.run_data.description)),
        log_(directory.metrics(), standing_.manifest.position) {
    if (run.run_data.test)
      evaluation_data_ = std::make_unique<data::Loader>(*run.run_data.test,
                                                        evaluation_loader_options(run.spec, run.run_data.description));
    if (options.tensorboard || fs::exists(directory.tensorboard()))
      tensorboard_ = std::make_unique<TensorboardLog>(directory.tensorboard(), standing_.manifest.position.step,
                                                      seconds_since_1970);
    run.make_executors();  // allocates: what does not fit fails here
    store_.tidy(standing_.manifest.best);
    if (options.progress != nullptr) {
      ProgressOptions progress = progress_options_for(options.progress);
      progress.item = info().item();
      progress_ = std::make_unique<Progress>(options.progress, std::move(progress));
    }
  }

  RunOutcome train() {
    const FitInputs inputs{run_.spec,
                           run_.training,
                           run_.evaluation,
                           standing_.state,
                           training_data_,
                           evaluation_data_.get(),
                           run_.update ? &*run_.update : nullptr};
    RunOutcome outcome;
    try {
      const FitResult result = fit(inputs, standing_.manifest.position, hooks());
      outcome.finished = result.finished;
      outcome.steps_done = result.position.step;
      outcome.summary = summary_of(run_, result.position, standing_.manifest, standing_.state, rss_before_);
    } catch (const Error& error) {
      if (progress_) progress_->finish();
      if (error.kind() != ErrorKind::numeric) throw;
      throw Error(error.kind(), error.what() + last_good());
    }
    if (progress_) progress_->finish();
    if (outcome.finished) write_atomically(directory_.summary(), print_summary(outcome.summary));
    outcome.directory = directory_.path();
    return outcome;
  }

 private:
  static int64_t start_measuring() {
    reset_peak_resident_bytes();
    return resident_bytes();
  }

  std::string last_good() const {
    const std::vector<fs::path> found = store_.list();
    if (found.empty()) return "; no checkpoint had been made yet";
    return fmt::format("; the last good checkpoint is '{}'", found.front().string());
  }

  Hooks hooks() {
    return {.on_step = [this](const StepMetrics& metrics) { on_step(metrics); },
            .on_epoch = [this](const EpochMetrics& metrics) { on_epoch(metrics); },
            .tell_epoch = [this](const EpochMetrics& metrics) { tell_epoch(metrics); },
            .save = [this](const Position& position) { save(position); },
            .stop_requested = options_.stop_requested};
  }

  void save(const Position& position) {
    Manifest& manifest = standing_.manifest;
    manifest.position = position;
    const std::optional<EpochMetrics>& last = manifest.last_epoch;
    if (last && last->step == position.step && last->test_loss) {
      BestCheckpoint now{.step = position.step};
      if (data::accuracy_decides(info().task)) now.accuracy = last->test_accuracy;
      if (!now.accuracy) now.loss = last->test_loss;
      if (is_better(now, manifest.best.value_or(BestCheckpoint{}))) manifest.best = now;
    }
    log_.sync();  // records of the steps before a checkpoint are not written again
    if (tensorboard_) tensorboard_->sync();
    store_.write(standing_.state, manifest);
  }

  void on_step(const StepMetrics& metrics) {
    if (progress_)
      progress_->update({.epoch = metrics.epoch + 1,
                         .epochs = begun_epochs(run_.spec),
                         .step = metrics.step + 1,
                         .steps = metrics.steps,
                         .items = metrics.samples * info().items_per_sample(),
                         .loss = metrics.loss,
                         .loss_scale = metrics.loss_scale.value_or(0),
                         .skipped_steps = metrics.skipped_steps,
                         .wait_share = metrics.wait_share});
    warn_of_damage();
    log_.add(metrics);
    if (tensorboard_) tensorboard_->add(metrics);
  }

  /// One line when the first damaged sample was passed over; the summary has their number.
  void warn_of_damage() {
    const data::Dataset& training = *run_.run_data.training;
    if (warned_ || training.damaged_samples() == 0 || !options_.note) return;
    warned_ = true;
    const std::string line = fmt::format(
        "{}; others are read in the place of such (summary.json counts them, `weft data {} --verify` names "
        "them)",
        training.describe_damaged().front(), run_.spec.data);
    if (progress_) progress_->finish();
    options_.note(line);
  }

  void on_epoch(const EpochMetrics& metrics) {
    standing_.manifest.last_epoch = metrics;
    log_.add(metrics);
    if (tensorboard_) tensorboard_->add(metrics);
  }

  void tell_epoch(const EpochMetrics& metrics) {
    if (!progress_) return;
    std::string line =
        fmt::format("epoch {}/{}: train loss {:.4f}", metrics.epoch + 1, begun_epochs(run_.spec), metrics.train_loss);
    const auto add = [&](fmt::format_string<double> format, const std::optional<double>& value, double factor = 1) {
      if (value) line += fmt::format(format, factor * *value);
    };
    add(", accuracy {:.2f} %", metrics.train_accuracy, 100);
    add("; test loss {:.4f}", metrics.test_loss);
    add(", perplexity {:.3f}", metrics.test_perplexity);
    add(", accuracy {:.2f} %", metrics.test_accuracy, 100);
    add(", by token {:.2f} %", metrics.test_token_accuracy, 100);
    add(", mean IoU {:.2f} %", metrics.test_mean_iou, 100);
    add(", rmse {:.4g}", metrics.test_rmse);
    add(", R2 {:.4f}", metrics.test_r2);
    if (metrics.input_wait_seconds > 0.01 * metrics.step_seconds)
      line += fmt::format("; waited {} for data", human_duration(metrics.input_wait_seconds));
    progress_->message(fmt::format("{}; {:.0f} {}/s, {} so far", line, metrics.items_per_second, info().item(),
                                   human_duration(metrics.train_seconds)));
  }

  const data::DatasetInfo& info() const { return run_.run_data.description.info; }

  PreparedRun& run_;
  const RunDirectory& directory_;
  const RunOptions& options_;
  int64_t rss_before_;
  Standing standing_;
  CheckpointStore store_;
  data::Loader training_data_;
  std::unique_ptr<data::Loader> evaluation_data_;
  MetricsLog log_;
  bool warned_ = false;  // of damaged samples
  std::unique_ptr<TensorboardLog> tensorboard_;
  std::unique_ptr<Progress> progress_;
};

/// Whether it is asked for, of classes, and the model brings a loss of its own.
bool ignores_label_smoothing(const PreparedRun& run) {
  const auto& nodes = run.step.graph.nodes();
  const bool smooths = mixes(run.spec.augment) || std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
                         return node.op->name == "cross_entropy";
                       });
  const data::Task task = run.run_data.description.info.task;
  return run.spec.loss.label_smoothing > 0 && task != data::Task::regression && !smooths;
}

/// What there is to say about the data's files.
void note_files(const PreparedRun& run, const RunOptions& options) {
  if (!options.note) return;
  if (const std::string note = note_of_long_texts(run.step.graph, *run.run_data.training); !note.empty())
    options.note(note);
  const std::string& training = run.run_data.training->info().note;
  if (!training.empty()) options.note(training);
  if (run.run_data.test && run.run_data.test->info().note != training && !run.run_data.test->info().note.empty())
    options.note(run.run_data.test->info().note);
  if (const int64_t uncached = run.run_data.training->uncached_bytes(); uncached > 0)
    options.note(fmt::format(
        "of the decoded pictures {} find no place in memory and are decoded in every epoch; pictures that `weft pack "
        "--size` has made smaller take less time",
        human_bytes(static_cast<double>(uncached))));
}

}  // namespace

RunOutcome start_run(const Library& library, const RunSpec& spec, const fs::path& path, const RunOptions& options) {
  RunDirectory::require_free(path);
  RunSpec resolved = spec;
  resolve(resolved);
  if (spec.precision == "auto") resolved.precision = "auto";  // for the network's own step to decide
  PreparedRun run(library, resolved, tuning_of(options.autotune, resolved.threads, options.note), options.note);
  keep_measured(run.backend, options.note);
  if (options.note && run.precision_times) options.note(describe(*run.precision_times));
  if (options.note && run.spec.precision == "f16" && !run.backend.computes_fast(DType::f16))
    options.note(
        "precision f16: on this CPU kernels compute in f32 and store f16, for less memory with large batches; bf16 and "
        "f32 "
        "are faster");
  note_files(run, options);
  if (options.note)
    for (const std::string& key : keys_without_effect(run.spec, run.run_data.description.info.task))
      options.note(key + " has no effect");
  if (options.note) {
    const std::string twice = describe_recompute(run.training.compiled(run.largest()), run.spec);
    if (!twice.empty()) options.note(twice);
    const std::string offloaded = describe_offload(run.training.compiled(run.largest()), run.spec);
    if (!offloaded.empty()) options.note(offloaded);
  }
  if (options.note && ignores_label_smoothing(run))
    options.note(fmt::format("loss.label_smoothing = {} with '{}', which has a loss of its own, has no effect",
                             run.spec.loss.label_smoothing, run.spec.model.name));
  const RunDirectory directory = RunDirectory::create(path, spec.model.name, run.run_data.description.info.name);
  const std::shared_ptr<void> lock = directory.lock();
  directory.remove_temporaries();
  FreshDirectoryGuard guard(&directory);  // after the lock: what another run writes there is not taken back
  run.spec.data = data::with_absolute_paths(library.data, spec.data);
  if (!spec.init.empty()) run.spec.init = fs::absolute(spec.init).lexically_normal().string();
  if (!spec.offload.empty()) run.spec.offload = fs::absolute(spec.offload).lexically_normal().string();
  write_atomically(directory.spec(), print_recipe(run.spec));
  write_description(directory, run);
  RunInDirectory in_directory(run, directory, options, {});
  guard.keep();
  return in_directory.train();
}

RunOutcome resume_run(const Library& library, const fs::path& path, int64_t threads, const RunOptions& options) {
  const RunDirectory directory = RunDirectory::open(path);
  const std::shared_ptr<void> lock = directory.lock();
  directory.remove_temporaries();
  RunSpec spec = directory.read_spec();
  if (threads > 0) spec.threads = threads;
  const auto note = [&](const std::string& line) {
    if (options.note) options.note(line);
  };
  fs::path checkpoint_path;
  const CheckpointStore store(directory.checkpoints(), spec.checkpoint.keep);
  store.put_back();
  if (const std::optional<Checkpoint> checkpoint = store.read_newest(note)) {
    require_same_spec(*checkpoint, spec);
    const Position& position = checkpoint->manifest.position;
    if (const std::optional<Summary> summary = finished_summary(directory, spec, position)) {
      note(fmt::format("'{}' is finished: this is its summary", path.string()));
      return {.directory = path, .finished = true, .steps_done = position.step, .summary = *summary};
    }
    checkpoint_path = checkpoint->path;  // read again once the measuring of memory has begun
    store.set_damaged_aside(position.step);
  } else {
    note("no checkpoint yet: starting from the first step");
  }
  PreparedRun run(library, spec, tuning_of_run(directory, options.note), options.note);
  require_same_data(directory, run);
  write_description(directory, run);
  return RunInDirectory(run, directory, options, checkpoint_path).train();
}

}  // namespace weft::train
