#include "weft/run/run_loop.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/program/damage_on_ranks.h"
#include "weft/program/same_run.h"
#include "weft/program/shared_state.h"
#include "weft/run/checkpoint/store.h"
#include "weft/run/checkpoint/write_parts.h"
#include "weft/run/copies.h"
#include "weft/run/run_summary.h"
#include "weft/spec/recipe.h"
#include "weft/step/metrics/entries.h"
#include "weft/train/epoch.h"

namespace weft::run {

namespace fs = std::filesystem;

RunLoop::RunLoop(program::PreparedRun& run, const RunDirectory* directory, const RunOptions& options,
                 const fs::path& checkpoint, bool has_changes)
    : run_(run), directory_(directory), options_(options), resume_point_(resume_point_of(run, checkpoint)) {
  if (has_changes) continue_changed();
  if (run.ranks != nullptr) program::require_same(run.ranks, program::traits_of(run, resume_point_.state));
  comm::on_all_ranks(run.ranks, "loaders of the data", [&] { open(); });
  share_initial_weights();
  run.make_executors();  // allocates: what does not fit fails here
}

RunOutcome RunLoop::train() {
  const std::vector<comm::Collectives*> collectives = run_.runtime.all_collectives();
  const train::FitInputs inputs{run_.spec,
                                run_.training,
                                run_.evaluation,
                                resume_point_.state,
                                *training_data_,
                                test_data_.get(),
                                run_.ranks,
                                collectives,
                                run_.library,
                                validation_data_.get(),
                                &run_.step,
                                run_.noise ? &*run_.noise : nullptr,
                                run_.gathers_in_evaluation};
  RunOutcome outcome;
  try {
    train::Hooks hooks = records_ ? records_->hooks() : train::Hooks();
    hooks.stop_requested = options_.stop_requested;
    hooks.saves_together = !run_.step.shardings.empty();
    if (hooks.saves_together && !records_)
      hooks.save = [&](const step::Position&) {
        write_in_parts(*run_.ranks, nullptr, resume_point_.state, {}, run_.step.shardings, run_.step.mesh);
      };
    hooks.pause_epochs = options_.pause_epochs;
    const train::FitResult result = train::fit(inputs, resume_point_.manifest.position, hooks);
    outcome.finished = result.finished;
    outcome.steps_done = result.position.step;
    outcome.epochs_done = result.position.epoch;
    outcome.paused = result.paused;
    if (outcome.finished && validation_data_ && test_data_)
      outcome.finished = measure_test_data(inputs, hooks, result.position.step);
    outcome.summary = summary_of(run_, result.position, resume_point_.manifest, resume_point_.state, memory_);
    if (records_) records_->add_times(outcome.summary);
    const std::vector<std::string> damaged = program::damaged_on_all_ranks(run_.run_data, run_.ranks);
    outcome.summary.damaged_samples =
        records_ ? records_->list_damaged_samples(damaged) : static_cast<int64_t>(damaged.size());
    outcome.summary.rank_step_seconds = result.rank_step_seconds;
    outcome.summary.rank_grains = result.position.grains;
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

/// The place of the next step is another one in another course, and a run that had ended goes on.
void RunLoop::continue_changed() {
  Manifest& manifest = resume_point_.manifest;
  manifest.spec_hash = spec::spec_hash(run_.spec, run_.library);
  step::Position& position = manifest.position;
  std::tie(position.epoch, position.step_in_epoch) = run_.course.place_of(position.step);
  position.ended = "";
}

/// Once, with the weights that the validation part chose. False where a stop was requested during it: a resumed run
/// does it again.
bool RunLoop::measure_test_data(const train::FitInputs& inputs, const train::Hooks& hooks, int64_t last_step) {
  const std::string told = comm::decided_by_first(run_.ranks, "best checkpoint", [&] {
    return std::to_string(resume_point_.manifest.best.value_or(BestCheckpoint{.step = last_step}).step);
  });
  const int64_t best_step = std::stoll(told);
  State best;
  if (best_step != last_step && !run_.step.shardings.empty()) {
    best = read_in_parts(run_, directory_ == nullptr ? fs::path() : directory_->checkpoints() / "best").state;
  } else if (best_step != last_step) {
    comm::on_all_ranks(run_.ranks, "best checkpoint", [&] {
      if (!comm::is_first(run_.ranks)) {
        best = step::initial_state(run_.step, static_cast<uint64_t>(run_.spec.seed), comm::rank_of(run_.ranks));
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

/// Only the first rank has read the file that they came from.
void RunLoop::share_initial_weights() {
  if (run_.ranks == nullptr || !options_.copies || run_.spec.init.empty()) return;
  const fs::path file = directory_ == nullptr ? fs::path() : directory_->initial_weights();
  copy_first_file(*run_.ranks, file, directory_ != nullptr);
}

void RunLoop::open() {
  const spec::DataDescription& description = run_.run_data.description;
  training_data_ = std::make_unique<data::Loader>(
      *run_.run_data.training,
      program::training_loader_options(run_.spec, description, run_.training_share, run_.library));
  const auto open_evaluated = [&](const std::unique_ptr<data::Dataset>& dataset) {
    return dataset ? std::make_unique<data::Loader>(
                         *dataset, program::evaluation_loader_options(run_.spec, description, run_.evaluation_share))
                   : nullptr;
  };
  validation_data_ = open_evaluated(run_.run_data.validation);
  test_data_ = open_evaluated(run_.run_data.test);
  if (directory_ == nullptr) return;
  records_ = std::make_unique<RunRecords>(run_, *directory_, options_, resume_point_, memory_);
  records_->on_initial_weights();
}

}  // namespace weft::run
