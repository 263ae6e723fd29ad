#include "weft/run/run_summary.h"

#include <cmath>

#include "weft/program/process_memory.h"
#include "weft/step/optimizers/loss_scaling.h"

namespace weft::run {

namespace {

int64_t damaged_samples(const program::RunData& data) {
  return data.training->damaged_samples() + (data.test ? data.test->damaged_samples() : 0);
}

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

}  // namespace

Summary summary_of(program::PreparedRun& run, const step::Position& position, const Manifest& manifest,
                   const State& state, int64_t rss_before) {
  const int64_t peak = program::peak_resident_bytes();
  const data::DatasetInfo& info = run.run_data.description.info;
  const int64_t items = run.course.samples_before(position.step) * info.items_per_sample();
  Summary summary{
      .model = run.spec.model.name,
      .data = info.name,
      .precision = run.spec.precision,
      .task = info.task,
      .item = std::string(info.item()),
      .ranks = run.share.shares,
      .threads = run.spec.threads,
      .parameters = step::parameter_count(run.step.parameters),
      .epochs = run.spec.epochs,
      .steps = position.step,
      .batch = run.spec.batch,
      .seed = run.spec.seed,
      .batches = {},
      .image_heights = {},
      .test_accuracy = {},
      .test_loss = {},
      .test_token_accuracy = {},
      .test_mean_iou = {},
      .test_perplexity = {},
      .test_rmse = {},
      .test_r2 = {},
      .best_test_accuracy = {},
      .best_test_loss = {},
      .train_accuracy = {},
      .train_loss = {},
      .train_seconds = position.train_seconds,
      .items_per_second = position.step_seconds > 0 ? static_cast<double>(items) / position.step_seconds : 0,
      .step_seconds = position.step_seconds,
      .input_wait_seconds = position.wait_seconds,
      .loss_scale = {},
      .skipped_steps = 0,
      .damaged_samples = damaged_samples(run.run_data),
      .compile_seconds = run.compile_seconds,
      .planned_peak_bytes = run.training.compiled(run.largest()).plan.arena_bytes,
      .arena_bytes = run.training.executor(run.largest()).arena_bytes(),
      .planned_total_bytes = run.planned_total_bytes,
      .rss_growth_bytes = peak - rss_before,
      .peak_rss_bytes = peak,
  };
  add_stages(summary, run);
  if (const step::LossScale loss_scale(state); loss_scale.is_used()) {
    summary.loss_scale = loss_scale.scale();
    summary.skipped_steps = loss_scale.skipped();
  }
  if (manifest.best) {
    summary.best_test_accuracy = manifest.best->accuracy;
    summary.best_test_loss = manifest.best->loss;
  }
  if (manifest.last_epoch) {
    const std::optional<double>& loss = manifest.last_epoch->test_loss;
    if (info.task == data::Task::language_model && loss) summary.test_perplexity = std::exp(*loss);
    summary.test_token_accuracy = manifest.last_epoch->test_token_accuracy;
    summary.test_mean_iou = manifest.last_epoch->test_mean_iou;
    summary.test_rmse = manifest.last_epoch->test_rmse;
    summary.test_r2 = manifest.last_epoch->test_r2;
    summary.test_accuracy = manifest.last_epoch->test_accuracy;
    summary.test_loss = manifest.last_epoch->test_loss;
    summary.train_accuracy = manifest.last_epoch->train_accuracy;
    summary.train_loss = manifest.last_epoch->train_loss;
  }
  return summary;
}

}  // namespace weft::run
