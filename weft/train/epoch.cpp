#include "weft/train/epoch.h"

#include "weft/program/shared_state.h"
#include "weft/step/optimizers/ema.h"
#include "weft/step/optimizers/loss_scaling.h"
#include "weft/step/virtual_ranks.h"

namespace weft::train {

step::EpochMetrics metrics_of_epoch(const step::Position& at, const data::DatasetInfo& info, const State& state,
                                    bool has_classes) {
  const auto samples = static_cast<double>(at.samples);
  const double items = samples * static_cast<double>(info.items_per_sample());
  step::EpochMetrics metrics{.epoch = at.epoch,
                             .step = at.step,
                             .train_loss = at.loss_sum / samples,
                             .items_per_second = at.epoch_seconds > 0 ? items / at.epoch_seconds : 0,
                             .item = info.item(),
                             .step_seconds = at.epoch_seconds,
                             .input_wait_seconds = at.epoch_wait_seconds};
  if (const step::LossScale loss_scale(state); loss_scale.is_used()) {
    metrics.loss_scale = loss_scale.scale();
    metrics.skipped_steps = loss_scale.skipped();
  }
  if (has_classes) metrics.train_accuracy = at.correct / (samples * static_cast<double>(info.answers_per_sample()));
  return metrics;
}

Evaluation evaluate_epoch(const FitInputs& in, State& state, data::Loader& data, const Hooks& hooks,
                          const std::vector<MetricEntry>& metrics) {
  const bool is_shared = in.step != nullptr && !in.step->shardings.empty();
  const EvaluateOptions options{.metrics = metrics,
                                .metric_options = in.spec.metrics,
                                .stop_requested = hooks.stop_requested,
                                .tta = in.spec.evaluation.tta,
                                .ranks = in.ranks,
                                .virtual_ranks = in.spec.virtual_ranks,
                                .batch = in.spec.evaluation.batch,
                                .place = step::place_of(in.spec, in.ranks),
                                .gathers_weights = in.gathers_in_evaluation};
  const bool takes_own = !is_shared || options.gathers_weights;
  if (in.spec.ema.decay == 0 && takes_own) return evaluate(in.evaluation, state, data, options);
  State averaged;
  if (in.spec.ema.decay > 0) averaged = step::averaged_state(state);
  if (takes_own) return evaluate(in.evaluation, averaged, data, options);
  State whole =
      program::whole_weights(*in.ranks, in.spec.ema.decay > 0 ? averaged : state, in.step->shardings, in.step->mesh);
  return evaluate(in.evaluation, whole, data, options);
}

}  // namespace weft::train
