#include "weft/train/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/comm/patience.h"
#include "weft/program/driver.h"
#include "weft/spec/course.h"
#include "weft/step/local_steps.h"
#include "weft/step/metrics/entries.h"
#include "weft/step/optimizers/ema.h"
#include "weft/step/optimizers/loss_scaling.h"
#include "weft/step/plateau.h"
#include "weft/step/step.h"
#include "weft/step/step_scalars.h"
#include "weft/step/virtual_ranks.h"
#include "weft/train/evaluate.h"
#include "weft/train/ranks/consensus.h"
#include "weft/train/ranks/shared_errors.h"
#include "weft/train/ranks/step_times.h"

namespace weft::train {

namespace {

/// Says when the next checkpoint by steps or seconds is due.
class SaveClock {
 public:
  explicit SaveClock(const spec::CheckpointSpec& spec) : spec_(spec), last_(steady_seconds()) {}
  bool due(const step::Position& position) const {
    if (spec_.every_steps > 0 && position.step % spec_.every_steps == 0) return true;
    return spec_.every_seconds > 0 && steady_seconds() - last_ >= spec_.every_seconds;
  }
  void saved() { last_ = steady_seconds(); }

 private:
  const spec::CheckpointSpec& spec_;
  double last_;
};

/// The loop with what it keeps between steps.
class Loop {
 public:
  Loop(const FitInputs& inputs, const step::Position& position, const Hooks& hooks)
      : in_(inputs),
        info_(inputs.training_data.dataset().info()),
        hooks_(hooks),
        at_(position),
        save_clock_(inputs.spec.checkpoint),
        course_(in_.spec, in_.training_data.dataset().size()),
        shards_(step::shards_of_rank(in_.spec, comm::number_of(in_.ranks))),
        metrics_(step::metrics_of(in_.entries, in_.spec.metrics, info_.task)),
        scalars_(in_.spec, course_, step::place_of(in_.spec, in_.ranks) * shards_, in_.entries),
        driver_(in_.training, in_.state),
        consensus_(in_.ranks, hooks.stop_requested),
        errors_(in_.collectives, in_.state),
        step_times_(in_.ranks),
        round_(in_.ranks) {
    if (averages()) round_.reserve(std::min(in_.spec.averaging.period, course_.total_steps()));
    has_classes_ = step::has_output(in_.training.compiled(course_.stage_of(0).shape()).graph, "correct");
    seconds_before_ = at_.train_seconds;
    begin_ = steady_seconds();
  }

  FitResult run() {
    const int64_t batches_done = at_.step_in_epoch * course_.stage_of(at_.epoch).accumulate;
    in_.training_data.start(at_.epoch, batches_done, spec::begun_epochs(in_.spec));
    bool stopped = false;
    while (!stopped && at_.epoch < spec::begun_epochs(in_.spec)) {
      stopped = !run_steps() || !finish_epoch();
    }
    at_.train_seconds = elapsed();
    const std::string where = consensus_.where_last_gradient_not_finite();
    if (refused_)
      throw Error(refused_->kind(),
                  refused_->what() + (where.empty() ? "" : "; the gradients were not finite" + where));
    return {at_, !stopped, step_times_.means()};
  }

 private:
  /// The rest of the epoch's steps; false where a stop was requested, after saving.
  bool run_steps() {
    const spec::Stage& stage = course_.stage_of(at_.epoch);
    driver_.select(stage.shape());
    driver_.bind_scalars(scalars_);
    const bool has_update = driver_.has(program::Phase::update);
    Executor* const update = has_update ? &driver_.executor(program::Phase::update) : nullptr;
    const Graph* const update_graph = has_update ? &driver_.graph(program::Phase::update) : nullptr;
    consensus_.bind({&driver_.executor(), &driver_.graph()}, {update, update_graph});
    const bool sums_in_update = update_graph != nullptr && step::has_output(*update_graph, "loss");
    const step::LossScale loss_scale(in_.state);
    const bool has_norm = driver_.has_output("gradient_norm", driver_.last());
    const int64_t steps = course_.steps_of(at_.epoch), parts = stage.accumulate;
    const double rate_factor = spec::scaled_rate(in_.spec, stage);
    StepResult result;
    const data::Batch* batch = nullptr;
    // Made here, as nothing is allocated between steps.
    const program::StepHooks hooks{.next_batch = [&](int64_t) { batch = &in_.training_data.next(); },
                                   .bind_batch = [&](int64_t shard) { driver_.bind_batch(*batch, shard); },
                                   .batch_done =
                                       [&](int64_t) {
                                         if (!sums_in_update) add_results(driver_.executor(), parts, result);
                                         result.samples += comm::number_of(in_.ranks) * batch->count;
                                       },
                                   .before_run = [&](const Executor& executor) { before_run(executor); },
                                   .after_run = [&](const Executor& executor) { consensus_.after_run(executor); }};
    while (at_.step_in_epoch < steps) {
      tell_position();
      const double begin = steady_seconds(), waited = in_.training_data.wait_seconds(),
                   waited_for_ranks = rank_wait_seconds();
      const int64_t skipped = loss_scale.is_used() ? loss_scale.skipped() : 0;
      result = {};
      driver_.run_step(scalars_, {.step = at_.step, .parts = parts, .rate_factor = at_.plateau.factor * rate_factor},
                       shards_, hooks);
      if (sums_in_update) add_results(*update, 1, result);
      if (has_norm)
        result.gradient_norm = static_cast<double>(driver_.executor(driver_.last()).scalar_output("gradient_norm"));
      result.seconds = steady_seconds() - begin;
      result.wait_seconds = in_.training_data.wait_seconds() - waited;
      if (loss_scale.is_used()) {
        require_patience(loss_scale);
        result.is_skipped = loss_scale.skipped() > skipped;
        result.loss_scale = loss_scale.scale();
        result.skipped_steps = loss_scale.skipped();
      }
      record(result, stage);
      step_times_.add({.step = result.seconds - (rank_wait_seconds() - waited_for_ranks),
                       .input_wait = result.wait_seconds,
                       .whole = result.seconds});
      const bool ends_epoch = at_.step_in_epoch == steps;  // finish_epoch() saves what is due then
      if (averages()) {
        save_due_ = save_due_ || save_clock_.due(at_);
        if (!ends_epoch && round_.size() < period()) continue;
      }
      const bool stop = averages() ? end_round() : consensus_.stops();
      if (!stop && consensus_.exchanges()) exchange_times();
      if (stop || (!ends_epoch && is_save_due())) save();
      if (stop) return false;
    }
    driver_.finish();
    if (at_.epoch + 1 == spec::begun_epochs(in_.spec)) return true;
    // Batches that do not fill another step are left out.
    for (int64_t left = course_.batches_of(at_.epoch) % parts; left > 0; --left) in_.training_data.next();
    return true;
  }

  /// In all, for the other ranks, in steps and to average weights.
  double rank_wait_seconds() const {
    return (in_.collectives == nullptr ? 0 : in_.collectives->waited_seconds()) + round_.waited_seconds();
  }

  void exchange_times() {
    for (const RankPace& pace : step_times_.exchange())
      if (hooks_.on_rank_pace) hooks_.on_rank_pace(at_.step, pace);
  }

  /// For what waits of ranks have to say.
  void tell_position() {
    if (in_.ranks == nullptr) return;
    const auto written = fmt::format_to_n(position_text_.data(), position_text_.size(), "step {} of epoch {}",
                                          at_.step + 1, at_.epoch + 1);
    position_ = {position_text_.data(), std::min(written.size, position_text_.size())};
    if (in_.collectives != nullptr) in_.collectives->set_position(position_);
  }

  /// What came of the batches of one step.
  struct StepResult {
    double loss = 0, correct = 0, seconds = 0, wait_seconds = 0;
    int64_t samples = 0;
    std::optional<double> gradient_norm = {};
    bool is_skipped = false;  // its gradients were not finite and changed nothing
    std::optional<double> loss_scale = {};
    int64_t skipped_steps = 0;  // in all
  };

  void before_run(const Executor& executor) {
    // Several runs may go by before anybody waits for the others.
    if (in_.ranks != nullptr)
      comm::require_signs_of_life(*in_.ranks, comm::WaitLimits{}.silence_seconds, {"training", {}, position_});
    consensus_.before_run(executor, step_times_.is_due());
  }

  /// Of one of so many batches.
  void add_results(const Executor& executor, int64_t parts, StepResult& result) const {
    result.loss += static_cast<double>(executor.scalar_output("loss")) / static_cast<double>(parts);
    if (has_classes_) result.correct += static_cast<double>(executor.scalar_output("correct"));
  }

  void require_patience(const step::LossScale& loss_scale) const {
    if (loss_scale.skipped_in_a_row() < in_.spec.loss_scaling.patience) return;
    throw comm::SharedError(
        ErrorKind::numeric,
        fmt::format("the gradients were not finite in {} steps in a row, the last one step {}{} (epoch {}, "
                    "learning rate {:.3g}), "
                    "down to a loss scale of {:g}; lower the rate with --set "
                    "optimizer.learning_rate=..., rise slowly with --set "
                    "schedule.warmup_epochs=1, or compute in a wider type with --precision",
                    loss_scale.skipped_in_a_row(), at_.step + 1, consensus_.where_gradient_not_finite(), at_.epoch + 1,
                    scalars_.learning_rate(), loss_scale.scale()));
  }

  void record(const StepResult& result, const spec::Stage& stage) {
    at_.epoch_seconds += result.seconds;
    at_.step_seconds += result.seconds;
    at_.epoch_wait_seconds += result.wait_seconds;
    at_.wait_seconds += result.wait_seconds;
    std::optional<double> momentum;
    if (in_.spec.optimizer.momentum_schedule.changes()) momentum = scalars_.momentum();
    const step::StepMetrics metrics{
        .epoch = at_.epoch,
        .step = at_.step,
        .steps = course_.total_steps(),
        .learning_rate = scalars_.learning_rate(),
        .loss = result.loss,
        .samples = course_.samples_before(at_.step + 1),
        .batch = result.samples,
        .image_height = stage.image_height,
        .momentum = momentum,
        .gradient_norm = result.gradient_norm,
        .wait_share = at_.epoch_seconds > 0 ? at_.epoch_wait_seconds / at_.epoch_seconds : 0,
        .loss_scale = result.loss_scale,
        .skipped_steps = result.skipped_steps};
    if (!averages()) tell(metrics, result.correct, result.is_skipped);
    ++at_.step_in_epoch;
    ++at_.step;
    if (averages()) round_.add({metrics, result.correct});
  }

  /// Of all ranks.
  void tell(const step::StepMetrics& metrics, double correct, bool is_skipped) {
    const bool is_finite = std::isfinite(metrics.loss);
    if (!is_finite && !is_skipped) {
      driver_.finish();  // nobody is left waiting
      throw comm::SharedError(
          ErrorKind::numeric,
          fmt::format("the loss became {}{} at step {} (epoch {}, learning rate {:.3g}); lower it with --set "
                      "optimizer.learning_rate=..., or rise slowly with --set schedule.warmup_epochs=1",
                      std::isnan(metrics.loss) ? "NaN" : "infinite", consensus_.where_not_finite(), metrics.step + 1,
                      metrics.epoch + 1, metrics.learning_rate));
    }
    if (refused_) throw Error(*refused_);
    if (is_finite) {
      at_.loss_sum += metrics.loss * static_cast<double>(metrics.batch);
      at_.correct += correct;
      at_.samples += metrics.batch;
    }
    if (hooks_.on_step) hooks_.on_step(metrics);
  }

  /// Steps from one mean of the weights to the next.
  int64_t period() const { return at_.averaging.period > 0 ? at_.averaging.period : in_.spec.averaging.period; }

  /// Of ranks that trained apart: what happened, and one state for all. Whether a stop was requested.
  bool end_round() {
    const double begin = steady_seconds(), waited_for_ranks = rank_wait_seconds();
    const step::Round::Wishes wishes =
        round_.agree({.stop = hooks_.stop_requested && hooks_.stop_requested(), .exchange = step_times_.is_due()});
    average();
    const double seconds = steady_seconds() - begin;
    step_times_.add_between({.step = seconds - (rank_wait_seconds() - waited_for_ranks), .whole = seconds});
    at_.epoch_seconds += seconds;
    at_.step_seconds += seconds;
    if (at_.averaging.first_loss == 0) at_.averaging.first_loss = round_.loss();
    for (const step::Round::Step& step : round_.steps()) tell(step.metrics, step.correct, /*is_skipped=*/false);
    consensus_.begin_anew();
    round_.begin_anew();
    if (!wishes.stop && wishes.exchange) exchange_times();
    return wishes.stop;
  }

  void average() {
    using program::Phase;
    const double rate = round_.rate();
    driver_.set_scalar(step::kRoundRate, rate, Phase::averaging);
    driver_.set_scalar(step::kInverseRoundRate, rate > 0 ? 1 / rate : 0, Phase::averaging);
    driver_.run(Phase::averaging);
    driver_.select(driver_.shape());  // the states are read, as the steps lay them out
  }

  /// False where a stop was requested during the evaluation, after saving where it will be done again.
  bool finish_epoch() {
    const bool last = at_.epoch + 1 == spec::begun_epochs(in_.spec);
    const auto samples = static_cast<double>(at_.samples);
    const double items = samples * static_cast<double>(info_.items_per_sample());
    step::EpochMetrics metrics{.epoch = at_.epoch,
                               .step = at_.step,
                               .train_loss = at_.loss_sum / samples,
                               .items_per_second = at_.epoch_seconds > 0 ? items / at_.epoch_seconds : 0,
                               .item = info_.item(),
                               .step_seconds = at_.epoch_seconds,
                               .input_wait_seconds = at_.epoch_wait_seconds};
    if (const step::LossScale loss_scale(in_.state); loss_scale.is_used()) {
      metrics.loss_scale = loss_scale.scale();
      metrics.skipped_steps = loss_scale.skipped();
    }
    if (has_classes_)
      metrics.train_accuracy = at_.correct / (samples * static_cast<double>(info_.answers_per_sample()));
    for (const MetricEntry& metric : metrics_) metrics.test_metrics.push_back({metric.name, {}});
    if (in_.evaluation_data != nullptr && (last || is_due(in_.spec.evaluation.every_epochs))) {
      const Evaluation evaluation = evaluate_state();
      if (!evaluation.finished) {
        save();
        return false;
      }
      metrics.test_loss = evaluation.loss;
      metrics.test_metrics = evaluation.metrics;
    }
    if (averages() && in_.spec.averaging.adaptive) {
      at_.averaging.period = period();
      at_.averaging.period = step::adapted_period(in_.spec.averaging, at_.averaging, metrics.train_loss);
    }
    at_.plateau = step::after_epoch(at_.plateau, in_.spec.schedule, metrics);
    const bool save_now = last || is_due(in_.spec.checkpoint.every_epochs) || is_save_due();
    ++at_.epoch;
    at_.step_in_epoch = 0;
    at_.loss_sum = at_.correct = at_.epoch_seconds = at_.epoch_wait_seconds = 0;
    at_.samples = 0;
    metrics.train_seconds = elapsed();
    if (hooks_.on_epoch) hooks_.on_epoch(metrics);
    if (save_now) save();
    if (hooks_.tell_epoch) hooks_.tell_epoch(metrics);
    return true;
  }

  Evaluation evaluate_state() {
    const EvaluateOptions options{.metrics = metrics_,
                                  .metric_options = &in_.spec.metrics,
                                  .stop_requested = hooks_.stop_requested,
                                  .tta = in_.spec.evaluation.tta,
                                  .ranks = in_.ranks,
                                  .virtual_ranks = in_.spec.virtual_ranks,
                                  .batch = in_.spec.evaluation.batch,
                                  .place = step::place_of(in_.spec, in_.ranks)};
    if (in_.spec.ema.decay == 0) return evaluate(in_.evaluation, in_.state, *in_.evaluation_data, options);
    State averaged = step::averaged_state(in_.state);
    return evaluate(in_.evaluation, averaged, *in_.evaluation_data, options);
  }

  bool is_due(int64_t every_epochs) const { return every_epochs > 0 && (at_.epoch + 1) % every_epochs == 0; }

  /// By steps or seconds. Where all ranks have something to do before a checkpoint, all of them save together.
  bool is_save_due() {
    double due = save_due_ || save_clock_.due(at_) ? 1 : 0;
    if (errors_.exist() && in_.spec.checkpoint.every_seconds > 0)
      comm::all_reduce_max(*in_.ranks, {&due, 1}, "time of the next checkpoint");
    return due > 0;
  }

  bool averages() const { return in_.training.has(program::Phase::averaging); }

  double elapsed() const { return seconds_before_ + steady_seconds() - begin_; }

  void save() {
    driver_.finish();
    errors_.average();
    at_.train_seconds = elapsed();
    try {
      if (hooks_.save) hooks_.save(at_);
    } catch (const Error& error) {
      // One of several ranks writes and sees it; the loss of the next step, on all of them, says whose gradient it was.
      if (error.kind() != ErrorKind::numeric || in_.ranks == nullptr) throw;
      refused_ = error;
    }
    save_clock_.saved();
    save_due_ = false;
  }

  const FitInputs& in_;
  const data::DatasetInfo& info_;
  const Hooks& hooks_;
  step::Position at_;
  SaveClock save_clock_;
  bool has_classes_ = false;  // something to be right about
  const spec::Course course_;
  const int64_t shards_;  // of a batch, which this process computes one after the other
  const std::vector<MetricEntry> metrics_;
  step::StepScalars scalars_;
  program::Driver driver_;
  Consensus consensus_;
  SharedErrors errors_;
  StepTimes step_times_;
  std::array<char, 64> position_text_{};
  std::string_view position_;          // of the step, in that text
  step::Round round_;                  // of ranks that train apart
  bool save_due_ = false;              // since a step that had to wait for the others
  std::optional<Error> refused_ = {};  // to save a state that is not finite
  double seconds_before_ = 0, begin_ = 0;
};

}  // namespace

FitResult fit(const FitInputs& inputs, const step::Position& position, const Hooks& hooks) {
  return Loop(inputs, position, hooks).run();
}

}  // namespace weft::train
