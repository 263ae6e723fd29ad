#include "weft/run/run_records.h"

#include <chrono>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/step/metrics/entries.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RunRecords::RunRecords(const program::PreparedRun& run, const RunDirectory& directory, const RunOptions& options,
                       ResumePoint& resume_point)
    : run_(run),
      options_(options),
      resume_point_(resume_point),
      metrics_(step::metrics_of(run.library, run.spec.metrics, info().task)),
      store_(directory.checkpoints(), run.spec.checkpoint.keep),
      log_(directory.metrics(), resume_point.manifest.position) {
  if (options.tensorboard || fs::exists(directory.tensorboard()))
    tensorboard_ = std::make_unique<TensorboardLog>(directory.tensorboard(), resume_point.manifest.position.step,
                                                    seconds_since_1970);
  store_.tidy(resume_point.manifest.best);
  if (options.progress == nullptr) return;
  ProgressOptions progress = progress_options_for(options.progress);
  progress.item = info().item();
  progress_ = std::make_unique<Progress>(options.progress, std::move(progress));
}

void RunRecords::end_line() {
  if (progress_) progress_->finish();
}

std::string RunRecords::last_good() const {
  const std::vector<fs::path> found = store_.list();
  if (found.empty()) return "; no checkpoint had been made yet";
  return fmt::format("; the last good checkpoint is '{}'", found.front().string());
}

train::Hooks RunRecords::hooks() {
  return {.on_step = [this](const step::StepMetrics& metrics) { on_step(metrics); },
          .on_epoch = [this](const step::EpochMetrics& metrics) { on_epoch(metrics); },
          .tell_epoch = [this](const step::EpochMetrics& metrics) { tell_epoch(metrics); },
          .save = [this](const step::Position& position) { save(position); },
          .on_rank_pace = [this](int64_t step, const train::RankPace& pace) { on_rank_pace(step, pace); },
          .stop_requested = {}};
}

void RunRecords::save(const step::Position& position) {
  Manifest& manifest = resume_point_.manifest;
  manifest.position = position;
  const std::optional<step::EpochMetrics>& last = manifest.last_epoch;
  if (last && last->step == position.step && last->test_loss) {
    BestCheckpoint now{.step = position.step};
    now.score = step::score_of(run_.library, info().task, last->test_metrics);
    if (!now.score) now.loss = last->test_loss;
    if (is_better(now, manifest.best.value_or(BestCheckpoint{}))) manifest.best = now;
  }
  log_.sync();  // records of the steps before a checkpoint are not written again
  if (tensorboard_) tensorboard_->sync();
  store_.write(resume_point_.state, manifest);
}

void RunRecords::on_step(const step::StepMetrics& metrics) {
  if (progress_)
    progress_->update({.epoch = metrics.epoch + 1,
                       .epochs = spec::begun_epochs(run_.spec),
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
void RunRecords::warn_of_damage() {
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

void RunRecords::on_epoch(const step::EpochMetrics& metrics) {
  resume_point_.manifest.last_epoch = metrics;
  log_.add(metrics);
  if (tensorboard_) tensorboard_->add(metrics);
}

void RunRecords::on_rank_pace(int64_t step, const train::RankPace& pace) {
  const std::string& host = run_.ranks->members()[static_cast<size_t>(pace.rank)].host;
  log_.add(step, pace, host);
  if (!options_.note) return;
  if (progress_) progress_->finish();
  options_.note(train::describe(pace, *run_.ranks));
}

void RunRecords::tell_epoch(const step::EpochMetrics& metrics) {
  if (!progress_) return;
  std::string line = fmt::format("epoch {}/{}: train loss {:.4f}", metrics.epoch + 1, spec::begun_epochs(run_.spec),
                                 metrics.train_loss);
  const auto add = [&](fmt::format_string<double> format, const std::optional<double>& value, double factor = 1) {
    if (value) line += fmt::format(format, factor * *value);
  };
  add(", accuracy {:.2f} %", metrics.train_accuracy, 100);
  add("; test loss {:.4f}", metrics.test_loss);
  for (const MetricEntry& metric : metrics_)
    if (const std::optional<double> value = find_metric(metrics.test_metrics, metric.name))
      line += fmt::format(", {} {}", metric.label, shown(metric, value));
  if (metrics.input_wait_seconds > 0.01 * metrics.step_seconds)
    line += fmt::format("; waited {} for data", human_duration(metrics.input_wait_seconds));
  progress_->message(fmt::format("{}; {:.0f} {}/s, {} so far", line, metrics.items_per_second, info().item(),
                                 human_duration(metrics.train_seconds)));
}

}  // namespace weft::run
