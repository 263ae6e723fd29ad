#include "weft/run/run_records.h"

#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/format.h"
#include "weft/program/process_memory.h"
#include "weft/run/checkpoint/write_parts.h"
#include "weft/run/metrics_history.h"
#include "weft/run/prediction_file.h"
#include "weft/step/metrics/entries.h"
#include "weft/step/monitor.h"

namespace weft::run {

namespace fs = std::filesystem;

namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// "'photos/a.jpg' is truncated" with a path that means the same from any directory.
std::string with_absolute_file(const std::string& message) {
  const size_t end = message.empty() ? 0 : message.find('\'', 1);
  if (end == 0 || end == message.npos || message.front() != '\'') return message;
  const fs::path file = message.substr(1, end - 1);
  return "'" + fs::absolute(file).lexically_normal().string() + message.substr(end);
}

}  // namespace

RunRecords::RunRecords(const program::PreparedRun& run, const RunDirectory& directory, const RunOptions& options,
                       ResumePoint& resume_point, const program::MemoryGrowth& memory)
    : run_(run),
      directory_(directory),
      options_(options),
      resume_point_(resume_point),
      metrics_(step::metrics_of(run.library, run.spec.metrics, info().task)),
      store_(directory.checkpoints(), run.spec.checkpoint.keep),
      log_(directory.metrics(), resume_point.manifest.position),
      memory_(memory),
      seconds_before_(resume_point.manifest.position.train_seconds) {
  if (std::optional<predict::Prediction> prediction = read_prediction(directory, options.note))
    watch_.emplace(std::move(*prediction));
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
          .on_validation = [this](const step::ValidationMetrics& metrics) { on_validation(metrics); },
          .on_noise = [this](const step::NoiseMetrics& metrics) { log_.add(metrics); },
          .save = [this](const step::Position& position) { save(position); },
          .on_rank_pace = [this](int64_t step, const train::RankPace& pace) { on_rank_pace(step, pace); },
          .on_shares = [this](int64_t step, const train::ShareChange& change) { on_shares(step, change); },
          .stop_requested = {}};
}

void RunRecords::save(const step::Position& position) {
  Manifest& manifest = resume_point_.manifest;
  manifest.position = position;
  if (run_.run_data.validation == nullptr)
    manifest.best = BestCheckpoint{.step = position.step};  // test data choose nothing
  else if (validated_ && validated_->step == position.step && is_better(*validated_, best_so_far()))
    manifest.best = validated_;
  log_.sync();  // records of the steps before a checkpoint are not written again
  if (tensorboard_) tensorboard_->sync();
  if (const step::Shardings& shardings = run_.step.shardings; !shardings.empty())
    write_in_parts(*run_.ranks, &store_, resume_point_.state, manifest, shardings, run_.step.mesh);
  else
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
  watch(metrics);
  log_.add(metrics);
  if (tensorboard_) tensorboard_->add(metrics);
}

void RunRecords::say_once(const std::string& line) {
  if (!options_.note) return;
  if (progress_) progress_->finish();
  options_.note(line);
}

void RunRecords::watch(const step::StepMetrics& metrics) {
  if (!watch_ || !options_.note) return;
  if (const std::optional<std::string> line = watch_->on_step(metrics.step, metrics.seconds)) say_once(*line);
  if (metrics.step + 1 == metrics.steps / 10) revise_target(directory_, watch_->prediction(), watch_->run_seconds());
  if ((metrics.step + 1) % kStepsPerRecord != 0) return;
  if (!watch_->is_news(memory_.with_peers())) return;
  if (const std::optional<std::string> line = watch_->on_memory(metrics.step + 1, memory_.now())) say_once(*line);
}

/// One line when the first damaged sample was passed over; the summary has their number.
void RunRecords::warn_of_damage() {
  const data::Dataset& training = *run_.run_data.training;
  if (warned_ || training.damaged_samples() == 0 || !options_.note) return;
  warned_ = true;
  const std::string line = fmt::format(
      "{}; {} takes the place of each damaged one (summary.json counts them, `weft data {} --verify` names them)",
      training.list_damaged().front().message, training.stand_in(), quoted_for_shell(run_.spec.data));
  if (progress_) progress_->finish();
  options_.note(line);
}

void RunRecords::on_initial_weights() const {
  const std::optional<InitialWeights>& weights = resume_point_.initial_weights;
  if (!weights) return;
  for (const std::string& line : weights->describe(options_.list_init))
    if (options_.note) options_.note(line);
  write_atomically(directory_.initial_weights(), print_initial_weights(*weights));
}

int64_t RunRecords::list_damaged_samples(const std::vector<std::string>& found) const {
  std::set<std::string> lines;
  if (std::error_code code; fs::exists(directory_.damaged_samples(), code)) {
    std::istringstream known(read_text(directory_.damaged_samples()));
    for (std::string line; std::getline(known, line);) lines.insert(line);
  }
  for (const std::string& line : found) lines.insert(with_absolute_file(line));
  if (!found.empty()) write_atomically(directory_.damaged_samples(), fmt::format("{}\n", fmt::join(lines, "\n")));
  return static_cast<int64_t>(lines.size());
}

BestCheckpoint RunRecords::best_so_far() const { return resume_point_.manifest.best.value_or(BestCheckpoint{}); }

void RunRecords::note_validation(int64_t step, double loss, const MetricValues& metrics) {
  validated_ = {.step = step, .score = step::score_of(run_.library, info().task, metrics), .loss = loss};
}

void RunRecords::on_validation(const step::ValidationMetrics& metrics) {
  if (watch_) watch_->on_evaluation(metrics.train_seconds - seconds_before_);
  note_validation(metrics.step, metrics.loss, metrics.metrics);
  log_.add(metrics);
  if (tensorboard_) tensorboard_->add(metrics);
}

void RunRecords::on_epoch(const step::EpochMetrics& metrics) {
  resume_point_.manifest.last_epoch = metrics;
  if (watch_) watch_->on_evaluation(metrics.train_seconds - seconds_before_);
  if (metrics.validation_loss) note_validation(metrics.step, *metrics.validation_loss, metrics.validation_metrics);
  log_.add(metrics);
  if (tensorboard_) tensorboard_->add(metrics);
}

void RunRecords::on_test(const TestMetrics& metrics) { log_.add(metrics); }

namespace {

/// Calls visit(value, seconds, step) for each evaluation that measured the metric, in order.
template <typename Visit>
void visit_evaluations(const MetricsHistory& history, const std::string& metric, const Visit& visit) {
  std::map<int64_t, std::pair<double, double>> found;  // by step
  for (const auto* records : {&history.by_validation, &history.by_epoch}) {
    const auto values = records->find(metric), seconds = records->find("train_seconds");
    if (values == records->end() || seconds == records->end()) continue;
    for (size_t at = 0; at < std::min(values->second.values.size(), seconds->second.values.size()); ++at)
      found[values->second.steps[at]] = {values->second.values[at], seconds->second.values[at]};
  }
  for (const auto& [step, value] : found)
    if (std::isfinite(value.first)) visit(value.first, value.second, step);
}

}  // namespace

void RunRecords::add_times(Summary& summary) const {
  const MetricsHistory history = read_metrics(log_.path());
  const std::string part = run_.run_data.validation ? "validation_" : "test_";
  const MetricEntry* decides = find_entry(run_.library.metrics, task_entry(run_.library, info().task).decided_by);
  const auto first_best = [&](const std::string& metric, bool higher_is_better) {
    std::optional<Reached> best;
    visit_evaluations(history, metric, [&](double value, double seconds, int64_t step) {
      const bool is_better = !best || (higher_is_better ? value > best->value : value < best->value);
      if (is_better) best = {metric, value, seconds, step};
    });
    return best;
  };
  if (decides != nullptr) summary.time_to_best = first_best(part + decides->name, decides->higher_is_better);
  if (!summary.time_to_best) summary.time_to_best = first_best(part + "loss", false);
  const spec::StopSpec& stop = run_.spec.stop;
  if (stop.target.empty()) return;
  const double target = std::strtod(stop.target.c_str(), nullptr);
  const double sign = step::higher_is_better(stop.monitor, run_.library) ? 1 : -1;
  visit_evaluations(history, stop.monitor, [&](double value, double seconds, int64_t step) {
    if (!summary.time_to_target && sign * (value - target) >= 0)
      summary.time_to_target = {stop.monitor, value, seconds, step};
  });
}

void RunRecords::on_rank_pace(int64_t step, const train::RankPace& pace) {
  const std::string& host = run_.ranks->members()[static_cast<size_t>(pace.rank)].host;
  log_.add(step, pace, host);
  if (!options_.note) return;
  if (progress_) progress_->finish();
  options_.note(train::describe(pace, *run_.ranks, /*of_equal_shares=*/run_.spec.balance.grains > 0));
}

void RunRecords::on_shares(int64_t step, const train::ShareChange& change) {
  log_.add(step, change);
  if (!options_.note) return;
  if (progress_) progress_->finish();
  options_.note(train::describe(change, *run_.ranks));
}

void RunRecords::tell_epoch(const step::EpochMetrics& metrics) {
  if (!progress_) return;
  std::string line = fmt::format("epoch {}/{}: train loss {:.4f}", metrics.epoch + 1, spec::begun_epochs(run_.spec),
                                 metrics.train_loss);
  const auto add = [&](fmt::format_string<double> format, const std::optional<double>& value, double factor = 1) {
    if (value) line += fmt::format(format, factor * *value);
  };
  add(", accuracy {:.2f} %", metrics.train_accuracy, 100);
  const auto add_part = [&](const char* part, const std::optional<double>& loss, const MetricValues& values) {
    if (loss) line += fmt::format("; {} loss {:.4f}", part, *loss);
    for (const MetricEntry& metric : metrics_)
      if (const std::optional<double> value = find_metric(values, metric.name))
        line += fmt::format(", {} {}", metric.label, shown(metric, value));
  };
  add_part("validation", metrics.validation_loss, metrics.validation_metrics);
  add_part("test", metrics.test_loss, metrics.test_metrics);
  if (metrics.input_wait_seconds > 0.01 * metrics.step_seconds)
    line += fmt::format("; waited {} for data", human_duration(metrics.input_wait_seconds));
  progress_->message(fmt::format("{}; {:.0f} {}/s, {} so far", line, metrics.items_per_second, info().item(),
                                 human_duration(metrics.train_seconds)));
}

}  // namespace weft::run
