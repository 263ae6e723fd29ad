#include "weft/run/run_summary.h"

#include "weft/program/process_memory.h"
#include "weft/step/metrics/entries.h"
#include "weft/step/optimizers/loss_scaling.h"

namespace weft::run {

namespace {

/// What each stage had, of what differs between them.
void add_stages(Summary& summary, const program::PreparedRun& run) {
  const std::vector<spec::Stage> stages = spec::stages_of(run.spec);
  const auto list = [&](auto value) {
    std::vector<int64_t> values;
    for (const spec::Stage& stage : stages)
      if (values.empty() || value(stage) != values.back()) values.push_back(value(stage));
    return values.size() > 1 ? values : std::vector<int64_t>();
  };
  summary.batches = list([](const spec::Stage& stage) { return stage.step_samples(); });
  const Shape& sample = run.run_data.description.info.sample_shape;
  if (sample.rank() == 3)
    summary.image_heights =
        list([&](const spec::Stage& stage) { return stage.image_height > 0 ? stage.image_height : sample[1]; });
}

/// What the validation part chose; nothing where there is none.
void add_best(Summary& summary, const Library& library, const Manifest& manifest) {
  if (!manifest.best || (!manifest.best->score && !manifest.best->loss)) return;
  const MetricEntry* decides = find_entry(library.metrics, task_entry(library, summary.task).decided_by);
  const std::optional<double>& score = manifest.best->score;
  if (decides != nullptr && score)
    summary.best = {"validation_" + decides->name, decides->higher_is_better ? *score : -*score};
  else  // a model may not give what the task is decided by
    summary.best = {"validation_loss", manifest.best->loss};
}

}  // namespace

Summary summary_of(program::PreparedRun& run, const step::Position& position, const Manifest& manifest,
                   const State& state, const program::MemoryGrowth& memory) {
  const int64_t peak = program::peak_resident_bytes();
  const data::DatasetInfo& info = run.run_data.description.info;
  const int64_t items = run.course.samples_before(position.step) * info.items_per_sample();
  Summary summary{
      .model = run.spec.model.name,
      .data = info.name,
      .precision = run.spec.precision,
      .task = info.task,
      .item = std::string(info.item()),
      .ranks = comm::number_of(run.ranks),
      .threads = run.spec.threads,
      .parameters = step::parameter_count(run.step.parameters),
      .epochs = run.spec.epochs,
      .steps = position.step,
      .batch = run.spec.batch,
      .seed = run.spec.seed,
      .batches = {},
      .image_heights = {},
      .epochs_done = position.epoch,
      .ended = position.ended,
      .validation_metrics = {},
      .validation_loss = {},
      .test_metrics = {},
      .test_loss = {},
      .best = {},
      .time_to_best = {},
      .time_to_target = {},
      .train_accuracy = {},
      .train_loss = {},
      .train_seconds = position.train_seconds,
      .items_per_second = position.step_seconds > 0 ? static_cast<double>(items) / position.step_seconds : 0,
      .step_seconds = position.step_seconds,
      .input_wait_seconds = position.wait_seconds,
      .loss_scale = {},
      .skipped_steps = 0,
      .damaged_samples = run.run_data.damaged_samples(),
      .compile_seconds = run.compile_seconds,
      .planned_peak_bytes = run.training.compiled(run.largest()).plan.arena_bytes,
      .arena_bytes = run.training.executor(run.largest()).arena_bytes(),
      .planned_total_bytes = run.planned_total_bytes,
      .rss_growth_bytes = memory.peak(),
      .code_growth_bytes = memory.code(),
      .peak_rss_bytes = peak,
  };
  add_stages(summary, run);
  if (const step::LossScale loss_scale(state); loss_scale.is_used()) {
    summary.loss_scale = loss_scale.scale();
    summary.skipped_steps = loss_scale.skipped();
  }
  for (const MetricEntry& metric : step::metrics_of(run.library, run.spec.metrics, info.task)) {
    summary.test_metrics.push_back({metric.name, {}});
    if (run.run_data.validation) summary.validation_metrics.push_back({metric.name, {}});
  }
  add_best(summary, run.library, manifest);
  if (manifest.last_epoch) {
    for (MetricValue& metric : summary.test_metrics)
      metric.value = find_metric(manifest.last_epoch->test_metrics, metric.name);
    for (MetricValue& metric : summary.validation_metrics)
      metric.value = find_metric(manifest.last_epoch->validation_metrics, metric.name);
    summary.validation_loss = manifest.last_epoch->validation_loss;
    summary.test_loss = manifest.last_epoch->test_loss;
    summary.train_accuracy = manifest.last_epoch->train_accuracy;
    summary.train_loss = manifest.last_epoch->train_loss;
  }
  return summary;
}

}  // namespace weft::run
