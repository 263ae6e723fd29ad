#include "weft/train/fit.h"

#include <chrono>
#include <cmath>

#include "weft/base/error.h"
#include "weft/train/evaluate.h"
#include "weft/train/schedules/schedule.h"
#include "weft/train/step.h"

namespace weft::train {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Says when the next checkpoint by steps or seconds is due.
class SaveClock {
 public:
  explicit SaveClock(const CheckpointSpec& spec) : spec_(spec), last_(now()) {}
  bool due(const Position& position) const {
    if (spec_.every_steps > 0 && position.step % spec_.every_steps == 0) return true;
    return spec_.every_seconds > 0 && now() - last_ >= spec_.every_seconds;
  }
  void saved() { last_ = now(); }

 private:
  const CheckpointSpec& spec_;
  double last_;
};

/// The loop with what it keeps between steps.
class Loop {
 public:
  Loop(const FitInputs& inputs, const Position& position, const Hooks& hooks)
      : in_(inputs),
        info_(inputs.training_data.dataset().info()),
        hooks_(hooks),
        at_(position),
        save_clock_(inputs.spec.checkpoint) {
    steps_per_epoch_ = in_.training_data.steps_per_epoch();
    total_steps_ = in_.spec.epochs * steps_per_epoch_;
    rate_ = make_schedule(in_.spec.schedule, in_.spec.optimizer.learning_rate, total_steps_, steps_per_epoch_);
    has_classes_ = has_output(in_.training.compiled(in_.spec.batch).graph, "correct");
    seconds_before_ = at_.train_seconds;
    begin_ = now();
  }

  FitResult run() {
    in_.training_data.start(at_.epoch, at_.step_in_epoch, in_.spec.epochs);
    bool stopped = false;
    while (!stopped && at_.epoch < in_.spec.epochs) {
      stopped = !run_steps() || !finish_epoch();
    }
    at_.train_seconds = elapsed();
    return {at_, !stopped};
  }

 private:
  /// The rest of the epoch's steps; false where a stop was requested, after saving.
  bool run_steps() {
    Executor& executor = in_.training.executor(in_.spec.batch);
    executor.bind_state(in_.state);
    const bool wants_step = executor.has_scalar("step");
    if (executor.has_scalar("seed")) executor.set_scalar("seed", static_cast<double>(in_.spec.seed));
    while (at_.step_in_epoch < steps_per_epoch_) {
      const double begin = now();
      const data::Batch& batch = in_.training_data.next();
      const double learning_rate = rate_(at_.step);
      bind_batch(executor, batch);
      executor.set_scalar("learning_rate", learning_rate);
      if (wants_step) executor.set_scalar("step", static_cast<double>(at_.step));
      executor.run();
      record(executor, batch.count, learning_rate, now() - begin);
      const bool stop = hooks_.stop_requested && hooks_.stop_requested();
      if (stop || (at_.step_in_epoch < steps_per_epoch_ && save_clock_.due(at_))) save();
      if (stop) return false;
    }
    return true;
  }

  void record(const Executor& executor, int64_t samples, double learning_rate, double seconds) {
    const double loss = static_cast<double>(executor.scalar_output("loss"));
    if (!std::isfinite(loss))
      fail(ErrorKind::numeric,
           "the loss became {} at step {} (epoch {}, learning rate {:.3g}); lower it with --set "
           "optimizer.learning_rate=..., or rise slowly with --set schedule.warmup_epochs=1",
           std::isnan(loss) ? "NaN" : "infinite", at_.step + 1, at_.epoch + 1, learning_rate);
    at_.loss_sum += loss * static_cast<double>(samples);
    if (has_classes_) at_.correct += static_cast<double>(executor.scalar_output("correct"));
    at_.samples += samples;
    at_.epoch_seconds += seconds;
    at_.step_seconds += seconds;
    ++at_.step_in_epoch;
    ++at_.step;
    if (hooks_.on_step)
      hooks_.on_step({.epoch = at_.epoch,
                      .step = at_.step - 1,
                      .steps = total_steps_,
                      .learning_rate = learning_rate,
                      .loss = loss,
                      .samples = at_.step * in_.spec.batch});
  }

  /// False where a stop was requested during the evaluation, after saving where it will be done again.
  bool finish_epoch() {
    const bool last = at_.epoch + 1 == in_.spec.epochs;
    const auto samples = static_cast<double>(at_.samples);
    const double items = samples * static_cast<double>(info_.items_per_sample());
    EpochMetrics metrics{.epoch = at_.epoch,
                         .step = at_.step,
                         .train_loss = at_.loss_sum / samples,
                         .items_per_second = at_.epoch_seconds > 0 ? items / at_.epoch_seconds : 0,
                         .item = info_.item()};
    if (has_classes_)
      metrics.train_accuracy = at_.correct / (samples * static_cast<double>(info_.predictions_per_sample()));
    if (in_.evaluation_data != nullptr && (last || is_due(in_.spec.evaluation.every_epochs))) {
      const Evaluation evaluation = evaluate(in_.evaluation, in_.state, *in_.evaluation_data, hooks_.stop_requested);
      if (!evaluation.finished) {
        save();
        return false;
      }
      metrics.test_loss = evaluation.loss;
      metrics.test_accuracy = evaluation.accuracy;
      if (info_.task == data::Task::language_model) metrics.test_perplexity = std::exp(evaluation.loss);
      metrics.test_rmse = evaluation.rmse;
      metrics.test_r2 = evaluation.r2;
    }
    const bool save_now = last || is_due(in_.spec.checkpoint.every_epochs);
    ++at_.epoch;
    at_.step_in_epoch = 0;
    at_.loss_sum = at_.correct = at_.epoch_seconds = 0;
    at_.samples = 0;
    metrics.train_seconds = elapsed();
    if (hooks_.on_epoch) hooks_.on_epoch(metrics);
    if (save_now) save();
    return true;
  }

  bool is_due(int64_t every_epochs) const { return every_epochs > 0 && (at_.epoch + 1) % every_epochs == 0; }

  double elapsed() const { return seconds_before_ + now() - begin_; }

  void save() {
    at_.train_seconds = elapsed();
    if (hooks_.save) hooks_.save(at_);
    save_clock_.saved();
  }

  const FitInputs& in_;
  const data::DatasetInfo& info_;
  const Hooks& hooks_;
  Position at_;
  SaveClock save_clock_;
  std::function<double(int64_t)> rate_;
  bool has_classes_ = false;  // something to be right about
  int64_t steps_per_epoch_ = 0, total_steps_ = 0;
  double seconds_before_ = 0, begin_ = 0;
};

}  // namespace

FitResult fit(const FitInputs& inputs, const Position& position, const Hooks& hooks) {
  return Loop(inputs, position, hooks).run();
}

}  // namespace weft::train
