#include "weft/train/run.h"

#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/base/progress.h"
#include "weft/graph/text.h"
#include "weft/train/checkpoint/store.h"
#include "weft/train/fit.h"
#include "weft/train/metrics_log.h"
#include "weft/train/prepared_run.h"
#include "weft/train/process_memory.h"
#include "weft/train/recipe.h"
#include "weft/train/run_directory.h"

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
  const CompiledStep& compiled = run.training.compiled(run.spec.batch);
  write_atomically(directory.data(), print_data_description(run.run_data.description));
  write_atomically(directory.plan(), to_json(compiled.plan, compiled.graph).dump(1) + "\n");
  write_atomically(directory.graph(), print_graph(compiled.graph));
}

/// Where the run stands: the state with the manifest that belongs to it.
struct Standing {
  State state;
  Manifest manifest;
};

Standing standing_of(const PreparedRun& run, std::optional<Checkpoint> checkpoint) {
  const std::string hash = spec_hash(run.spec);
  if (!checkpoint) {
    const auto seed = static_cast<uint64_t>(run.spec.seed);
    Standing standing{initial_state(run.step, seed), {}};
    standing.manifest.spec_hash = hash;
    standing.manifest.seed = run.spec.seed;
    return standing;
  }
  if (checkpoint->manifest.spec_hash != hash)
    fail(ErrorKind::data, "checkpoint '{}' belongs to another spec.toml; put the original one back, or start a new run",
         checkpoint->path.string());
  return {std::move(checkpoint->state), std::move(checkpoint->manifest)};
}

Summary summary_of(PreparedRun& run, const Position& position, const Manifest& manifest, int64_t rss_before) {
  const int64_t peak = peak_resident_bytes();
  Summary summary{
      .model = run.spec.model.name,
      .data = run.run_data.description.name,
      .precision = run.spec.precision,
      .threads = run.spec.threads,
      .parameters = parameter_count(run.step.parameters),
      .epochs = run.spec.epochs,
      .steps = position.step,
      .batch = run.spec.batch,
      .seed = run.spec.seed,
      .test_accuracy = {},
      .test_loss = {},
      .best_test_accuracy = {},
      .train_accuracy = {},
      .train_loss = {},
      .train_seconds = position.train_seconds,
      .images_per_second =
          position.step_seconds > 0 ? static_cast<double>(position.step * run.spec.batch) / position.step_seconds : 0,
      .compile_seconds = run.compile_seconds,
      .planned_peak_bytes = run.training.compiled(run.spec.batch).plan.arena_bytes,
      .arena_bytes = run.training.executor(run.spec.batch).arena_bytes(),
      .planned_total_bytes = run.planned_total_bytes(),
      .rss_growth_bytes = peak - rss_before,
      .peak_rss_bytes = peak,
  };
  if (manifest.best) summary.best_test_accuracy = manifest.best->accuracy;
  if (manifest.last_epoch) {
    summary.test_accuracy = manifest.last_epoch->test_accuracy;
    summary.test_loss = manifest.last_epoch->test_loss;
    summary.train_accuracy = manifest.last_epoch->train_accuracy;
    summary.train_loss = manifest.last_epoch->train_loss;
  }
  return summary;
}

/// The loop with all its hooks in one directory.
class RunInDirectory {
 public:
  RunInDirectory(PreparedRun& run, const RunDirectory& directory, const RunOptions& options,
                 std::optional<Checkpoint> checkpoint)
      : run_(run),
        directory_(directory),
        options_(options),
        rss_before_(start_measuring()),
        standing_(standing_of(run, std::move(checkpoint))),
        store_(directory.checkpoints(), run.spec.checkpoint.keep),
        training_data_(*run.run_data.training, training_loader_options(run.spec, run.run_data.description)),
        log_(directory.metrics(), standing_.manifest.position.step) {
    if (run.run_data.test)
      evaluation_data_ = std::make_unique<data::Loader>(*run.run_data.test,
                                                        evaluation_loader_options(run.spec, run.run_data.description));
    run.training.executor(run.spec.batch);  // allocates: what does not fit fails here
    store_.tidy(standing_.manifest.best);
    if (options.progress != nullptr)
      progress_ = std::make_unique<Progress>(options.progress, progress_options_for(options.progress));
  }

  RunOutcome train() {
    const FitInputs inputs{run_.spec,       run_.training,  run_.evaluation,
                           standing_.state, training_data_, evaluation_data_.get()};
    RunOutcome outcome;
    try {
      const FitResult result = fit(inputs, standing_.manifest.position, hooks());
      outcome.finished = result.finished;
      outcome.steps_done = result.position.step;
      outcome.summary = summary_of(run_, result.position, standing_.manifest, rss_before_);
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
            .save = [this](const Position& position) { save(position); },
            .stop_requested = options_.stop_requested};
  }

  void save(const Position& position) {
    Manifest& manifest = standing_.manifest;
    manifest.position = position;
    const std::optional<EpochMetrics>& last = manifest.last_epoch;
    const bool evaluated_now = last && last->step == position.step && last->test_accuracy;
    if (evaluated_now && (!manifest.best || *last->test_accuracy > manifest.best->accuracy))
      manifest.best = BestCheckpoint{position.step, *last->test_accuracy};
    store_.write(standing_.state, manifest);
  }

  void on_step(const StepMetrics& metrics) {
    if (progress_)
      progress_->update({.epoch = metrics.epoch + 1,
                         .epochs = run_.spec.epochs,
                         .step = metrics.step + 1,
                         .steps = metrics.steps,
                         .items = metrics.samples,
                         .loss = metrics.loss});
    log_.add(metrics);
  }

  void on_epoch(const EpochMetrics& metrics) {
    standing_.manifest.last_epoch = metrics;
    log_.add(metrics);
    if (!progress_) return;
    std::string line = fmt::format("epoch {}/{}: train loss {:.4f}, accuracy {:.2f} %", metrics.epoch + 1,
                                   run_.spec.epochs, metrics.train_loss, 100 * metrics.train_accuracy);
    if (metrics.test_accuracy)
      line += fmt::format("; test loss {:.4f}, accuracy {:.2f} %", *metrics.test_loss, 100 * *metrics.test_accuracy);
    progress_->message(fmt::format("{}; {:.0f} images/s, {} so far", line, metrics.images_per_second,
                                   human_duration(metrics.train_seconds)));
  }

  PreparedRun& run_;
  const RunDirectory& directory_;
  const RunOptions& options_;
  int64_t rss_before_;
  Standing standing_;
  CheckpointStore store_;
  data::Loader training_data_;
  std::unique_ptr<data::Loader> evaluation_data_;
  MetricsLog log_;
  std::unique_ptr<Progress> progress_;
};

}  // namespace

RunOutcome start_run(const RunSpec& spec, const fs::path& path, const RunOptions& options) {
  RunDirectory::require_free(path);
  PreparedRun run(spec);
  const RunDirectory directory = RunDirectory::create(path, spec.model.name, run.run_data.description.name);
  FreshDirectoryGuard guard(&directory);
  const std::shared_ptr<void> lock = directory.lock();
  write_atomically(directory.spec(), print_recipe(spec));
  write_description(directory, run);
  RunInDirectory in_directory(run, directory, options, std::nullopt);
  guard.keep();
  return in_directory.train();
}

RunOutcome resume_run(const fs::path& path, int64_t threads, const RunOptions& options) {
  const RunDirectory directory = RunDirectory::open(path);
  const std::shared_ptr<void> lock = directory.lock();
  RunSpec spec = directory.read_spec();
  if (threads > 0) spec.threads = threads;
  const auto note = [&](const std::string& line) {
    if (options.note) options.note(line);
  };
  std::optional<Checkpoint> checkpoint =
      CheckpointStore(directory.checkpoints(), spec.checkpoint.keep).read_newest(note);
  if (!checkpoint) note("no checkpoint yet: starting from the first step");
  PreparedRun run(spec);
  write_description(directory, run);
  return RunInDirectory(run, directory, options, std::move(checkpoint)).train();
}

}  // namespace weft::train
