#include "weft/train/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "weft/base/clock.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/comm/patience.h"
#include "weft/program/driver.h"
#include "weft/spec/course.h"
#include "weft/step/data_parallel.h"
#include "weft/step/local_steps.h"
#include "weft/step/metrics/entries.h"
#include "weft/step/micro_batches.h"
#include "weft/step/monitor.h"
#include "weft/step/optimizers/loss_scaling.h"
#include "weft/step/plateau.h"
#include "weft/step/rank_mesh.h"
#include "weft/step/step.h"
#include "weft/step/step_scalars.h"
#include "weft/step/stopping.h"
#include "weft/step/virtual_ranks.h"
#include "weft/train/epoch.h"
#include "weft/train/ranks/consensus.h"
#include "weft/train/ranks/relief.h"
#include "weft/train/ranks/shared_errors.h"
#include "weft/train/ranks/step_times.h"
#include "weft/train/saving.h"
#include "weft/train/step_result.h"

namespace weft::train {

namespace {

/// The loop with what it keeps between steps.
class Loop {
 public:
  Loop(const FitInputs& inputs, const step::Position& position, const Hooks& hooks)
      : in_(inputs),
        info_(inputs.training_data.dataset().info()),
        hooks_(hooks),
        at_(position),
        course_(in_.spec, in_.training_data.dataset().size()),
        shares_(step::data_ranks(in_.spec, comm::number_of(in_.ranks))),
        shards_(step::shards_of_rank(in_.spec, shares_)),
        metrics_(step::metrics_of(in_.entries, in_.spec.metrics, info_.task)),
        scalars_(in_.spec, course_, shares_, place_among_ranks(), in_.entries),
        driver_(in_.training, in_.state),
        max_seconds_(spec::max_seconds(in_.spec)),
        wants_stop_([this] { return stop_requested() || is_out_of_time(); }),
        consensus_(in_.ranks, wants_stop_),
        errors_(in_.collectives.empty() ? nullptr : in_.collectives.front(), in_.state),
        saving_(in_.spec.checkpoint, hooks, in_.ranks, errors_),
        step_times_(in_.ranks),
        relief_(in_.spec, in_.ranks, in_.training_data, at_.grains),
        round_(in_.ranks) {
    take_shares();
    if (averages()) round_.reserve(std::min(in_.spec.averaging.period, course_.total_steps()));
    has_classes_ = step::has_output(in_.training.compiled(course_.stage_of(0, 0).shape()).graph, "correct");
    seconds_before_ = at_.train_seconds;
    begin_ = steady_seconds();
  }

  FitResult run() {
    in_.training_data.start(at_.epoch, course_.batches_before_in_epoch(at_.epoch, at_.step_in_epoch),
                            spec::begun_epochs(in_.spec));
    bool stopped = false;
    while (!stopped && !is_over() && !is_pause()) stopped = !run_steps() || !finish_epoch();
    const bool paused = !stopped && hooks_.pause_epochs > 0;
    at_.train_seconds = elapsed();
    const std::string where = consensus_.where_last_gradient_not_finite();
    saving_.require_none_refused(where.empty() ? "" : "; the gradients were not finite" + where);
    return {at_, !stopped && !paused, paused, step_times_.means()};
  }

 private:
  /// The rest of the epoch's steps; false where a stop was requested, after saving.
  bool run_steps() {
    do {
      if (!run_stage(course_.stage_of(at_.epoch, at_.step_in_epoch))) return false;
    } while (at_.step_in_epoch < course_.steps_of(at_.epoch) && at_.ended.empty());
    if (is_last_epoch()) return true;
    // Batches that do not fill another step are left out.
    for (int64_t left = course_.batches_left_over(at_.epoch); left > 0; --left) in_.training_data.next();
    return true;
  }

  /// The epoch's steps up to the end of this stage.
  bool run_stage(const spec::Stage& stage) {
    driver_.select(stage.shape());
    const bool has_update = driver_.has(program::Phase::update);
    Executor* const update = has_update ? &driver_.executor(program::Phase::update) : nullptr;
    const Graph* const update_graph = has_update ? &driver_.graph(program::Phase::update) : nullptr;
    const auto bind = [&] {
      driver_.bind_scalars(scalars_);
      consensus_.bind({&driver_.executor(), &driver_.graph()}, {update, update_graph});
    };
    bind();
    const bool sums_in_update = update_graph != nullptr && step::has_output(*update_graph, "loss");
    const step::LossScale loss_scale(in_.state);
    const bool has_norm = driver_.has_output("gradient_norm", driver_.last());
    const int64_t steps = course_.stage_end(at_.epoch, at_.step_in_epoch), parts = stage.accumulate;
    const double rate_factor = spec::scaled_rate(in_.spec, stage);
    StepResult result;
    const data::Batch* batch = nullptr;
    bool completes = true;  // a run, the batch of this rank
    // Made here, as nothing is allocated between steps.
    const program::StepHooks hooks{
        .next_batch =
            [&](int64_t part) {
              batch = &in_.training_data.next();
              if (part > 0 || !is_noise_due()) return;
              measure_noise(*batch);
              driver_.select(stage.shape());
              bind();
            },
        .bind_batch =
            [&](int64_t shard) {
              completes = shard + 1 == shards_;
              driver_.bind_batch(*batch, shard);
            },
        .batch_done =
            [&](int64_t) {
              if (!sums_in_update) result.add(driver_.executor(), parts, has_classes_);
              result.samples += samples_of_all(*batch);
            },
        .before_run = [&](const Executor& executor) { before_run(executor); },
        .after_run = [&](const Executor& executor) { consensus_.after_run(executor, completes); }};
    bool is_synchronised = true;  // all ranks have the same states
    int64_t means = 0;            // so far in this stage, which also goes on only behind a mean of all states
    while (at_.step_in_epoch < steps && at_.ended.empty()) {
      if (is_synchronised && is_validation_due()) {
        if (!validate_within_epoch()) return false;
        driver_.select(stage.shape());
        bind();
        continue;
      }
      tell_position();
      if (relief_.begin_step(at_.step)) take_shares();
      const double begin = steady_seconds(), waited = in_.training_data.wait_seconds(),
                   waited_for_ranks = rank_wait_seconds();
      const int64_t skipped = loss_scale.is_used() ? loss_scale.skipped() : 0;
      result = {};
      driver_.run_step(scalars_, {.step = at_.step, .parts = parts, .rate_factor = at_.plateau.factor * rate_factor},
                       shards_, hooks);
      if (sums_in_update) result.add(*update, 1, has_classes_);
      if (has_norm)
        result.gradient_norm = static_cast<double>(driver_.executor(driver_.last()).scalar_output("gradient_norm"));
      if (noise_) tell_noise(result);
      result.seconds = steady_seconds() - begin;
      result.wait_seconds = in_.training_data.wait_seconds() - waited;
      if (loss_scale.is_used()) {
        if (loss_scale.skipped_in_a_row() >= in_.spec.loss_scaling.patience)
          refuse_gradients(loss_scale, at_, scalars_.learning_rate(), consensus_.where_gradient_not_finite());
        result.add(loss_scale, skipped);
      }
      record(result, stage);
      step_times_.add({.step = result.seconds - (rank_wait_seconds() - waited_for_ranks),
                       .input_wait = result.wait_seconds,
                       .whole = result.seconds});
      const bool ends_stage = at_.step_in_epoch == steps;
      const bool ends_epoch = ends_stage && steps == course_.steps_of(at_.epoch);  // finish_epoch() saves what is due
      if (averages()) {
        saving_.note_due(at_);
        const bool ends_round = ends_stage || round_.size() >= period();
        is_synchronised = ends_stage || (ends_round && ++means % in_.spec.averaging.states_every == 0);
        if (ends_round && !is_synchronised) end_round(program::Phase::weight_averaging);
        if (!is_synchronised) continue;
      }
      const bool stop = averages() ? end_round(program::Phase::averaging) : consensus_.stops();
      if (!stop && consensus_.exchanges()) exchange_times();
      if (stop && !stopped_by_request()) {
        at_.ended = "max_time";
        break;
      }
      const bool saves_later = ends_epoch || is_validation_due();  // with what the evaluation says of these weights
      if (stop || (!saves_later && saving_.is_due(at_))) save();
      if (stop) return false;
    }
    driver_.finish();
    return true;
  }

  /// Of those that divide a batch.
  int place_among_ranks() const {
    return in_.spec.virtual_ranks > 0 ? step::place_of(in_.spec, in_.ranks)
                                      : step::data_rank(in_.spec, comm::rank_of(in_.ranks), comm::number_of(in_.ranks));
  }

  bool is_noise_due() const {
    return in_.noise != nullptr && at_.step > 0 && at_.step % in_.spec.metrics.noise_every == 0;
  }

  /// The gradient of a part of the batch that comes next, or of this process's part of it, at the weights as they are.
  void measure_noise(const data::Batch& batch) {
    driver_.finish();
    program::Driver probe(*in_.noise, in_.state);
    probe.select(driver_.shape());
    probe.bind_batch(batch);
    probe.set_scalar("seed", in_.spec.seed);
    probe.set_scalar("step", at_.step);
    probe.run();
    const Graph& graph = probe.graph();
    const GraphInput* samples = graph.find_input("image");
    if (samples == nullptr) samples = graph.find_input("tokens");
    noise_ = step::NoiseMetrics{.small_batch = static_cast<double>(graph.shape(samples->value)[0]),
                                .small_square = static_cast<double>(probe.executor().scalar_output("gradient_square"))};
  }

  /// Beside the gradient of the whole step.
  void tell_noise(const StepResult& result) {
    noise_->step = at_.step;
    noise_->large_batch =
        static_cast<double>(averages() ? result.samples / comm::number_of(in_.ranks) : result.samples);
    const double norm = result.gradient_norm.value_or(0);
    noise_->large_square = norm * norm;
    if (hooks_.on_noise) hooks_.on_noise(*noise_);
    noise_.reset();
  }

  /// In all, for the other ranks, in steps and to average weights.
  double rank_wait_seconds() const {
    double seconds = round_.waited_seconds();
    for (comm::Collectives* collectives : in_.collectives) seconds += collectives->waited_seconds();
    return seconds;
  }

  void exchange_times() {
    for (const RankPace& pace : step_times_.exchange(relief_.shares()))
      if (hooks_.on_rank_pace) hooks_.on_rank_pace(at_.step, pace);
    if (const std::optional<ShareChange> change = relief_.judge(at_.step, step_times_.round()))
      if (hooks_.on_shares) hooks_.on_shares(at_.step, *change);
  }

  /// Of grains, where batches are cut into them.
  void take_shares() {
    if (!relief_.is_on()) return;
    shards_ = relief_.own();
    scalars_.set_grains(relief_.first(), relief_.share_of_grain());
    at_.grains = relief_.shares();
    step_times_.begin_anew();
  }

  int64_t samples_of_all(const data::Batch& own) const {
    if (relief_.is_on()) return own.count / relief_.own() * in_.spec.balance.grains;
    return shares_ * own.count;
  }

  bool stop_requested() const { return hooks_.stop_requested && hooks_.stop_requested(); }
  bool is_pause() const { return hooks_.pause_epochs > 0 && at_.epoch >= hooks_.pause_epochs; }
  bool is_out_of_time() const { return max_seconds_ && elapsed() >= *max_seconds_; }
  /// After the ranks agreed to stop: whether anybody asked for it. If not, the time is up.
  bool stopped_by_request() const {
    double requested = stop_requested() ? 1 : 0;
    if (in_.ranks != nullptr) comm::all_reduce_max(*in_.ranks, {&requested, 1}, "reason to stop");
    return requested > 0;
  }
  /// There is nothing left to do. A run whose end was decided, or reached, within an epoch has still to be evaluated.
  bool is_over() const {
    const bool is_between_epochs = at_.step_in_epoch == 0;
    return at_.epoch >= spec::begun_epochs(in_.spec) || (is_between_epochs && !at_.ended.empty());
  }
  /// Whether it is, of the epoch at hand.
  bool is_last_epoch() const {
    return !at_.ended.empty() || at_.epoch + 1 == spec::begun_epochs(in_.spec) || at_.step >= course_.total_steps();
  }

  /// Within an epoch, before its next step; also where a run goes on that was stopped before it, or during it. Where
  /// ranks train apart, it may have been due since their last mean.
  bool is_validation_due() const {
    const int64_t every = in_.spec.evaluation.every_steps;
    if (every == 0 || in_.validation_data == nullptr || at_.step_in_epoch == 0) return false;
    return at_.step / every > std::max(at_.validated_step, at_.step - at_.step_in_epoch) / every;
  }

  /// False where a stop was requested during it, after saving.
  bool validate_within_epoch() {
    driver_.finish();
    const Evaluation evaluation = evaluate_epoch(in_, in_.state, *in_.validation_data, hooks_, metrics_);
    if (!evaluation.finished) return end_by_request();
    if (hooks_.on_validation)
      hooks_.on_validation({.epoch = at_.epoch,
                            .step = at_.step,
                            .loss = evaluation.loss,
                            .metrics = evaluation.metrics,
                            .train_seconds = elapsed()});
    step::EpochMetrics metrics{.validation_loss = evaluation.loss, .validation_metrics = evaluation.metrics};
    decide_end(metrics);
    at_.validated_step = at_.step;
    if (saving_.is_due(at_)) save();
    return true;
  }

  /// Whether the run ends with what was measured.
  void decide_end(const step::EpochMetrics& metrics) {
    at_.stopping = step::after_evaluation(at_.stopping, in_.spec.stop, metrics, in_.entries);
    if (at_.ended.empty()) at_.ended = step::reason_to_stop(at_.stopping, in_.spec.stop, metrics, in_.entries);
  }

  /// False: the loop stops here, and a resumed run does the evaluation again.
  bool end_by_request() {
    save();
    return false;
  }

  /// For what waits of ranks have to say.
  void tell_position() {
    if (in_.ranks == nullptr) return;
    const auto written = fmt::format_to_n(position_text_.data(), position_text_.size(), "step {} of epoch {}",
                                          at_.step + 1, at_.epoch + 1);
    position_ = {position_text_.data(), std::min(written.size, position_text_.size())};
    for (comm::Collectives* collectives : in_.collectives) collectives->set_position(position_);
  }

  void before_run(const Executor& executor) {
    // Several runs may go by before anybody waits for the others.
    if (in_.ranks != nullptr)
      comm::require_signs_of_life(*in_.ranks, comm::WaitLimits{}.silence_seconds, {"training", {}, position_});
    consensus_.before_run(executor, step_times_.is_due());
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
        .skipped_steps = result.skipped_steps,
        .seconds = result.seconds};
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
      refuse_loss(metrics, consensus_.where_not_finite());
    }
    saving_.require_none_refused();
    if (is_finite) {
      at_.loss_sum += metrics.loss * static_cast<double>(metrics.batch);
      at_.correct += correct;
      at_.samples += metrics.batch;
    }
    if (hooks_.on_step) hooks_.on_step(metrics);
  }

  /// Steps from one mean of the weights to the next.
  int64_t period() const { return at_.averaging.period > 0 ? at_.averaging.period : in_.spec.averaging.period; }

  /// Of ranks that trained apart: what happened, and one state for all, or the same weights. Whether a stop was
  /// requested.
  bool end_round(program::Phase averaging) {
    const double begin = steady_seconds(), waited_for_ranks = rank_wait_seconds();
    const step::Round::Wishes wishes = round_.agree({.stop = wants_stop_(), .exchange = step_times_.is_due()});
    average(averaging);
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

  void average(program::Phase averaging) {
    const double rate = round_.rate();
    driver_.set_scalar(step::kRoundRate, rate, averaging);
    driver_.set_scalar(step::kInverseRoundRate, rate > 0 ? 1 / rate : 0, averaging);
    driver_.run(averaging);
    driver_.select(driver_.shape());  // the states are read, as the steps lay them out
  }

  /// False where a stop was requested during the evaluation, after saving where it will be done again.
  bool finish_epoch() {
    const bool last = is_last_epoch();
    step::EpochMetrics metrics = metrics_of_epoch(at_, info_, in_.state, has_classes_);
    for (const MetricEntry& metric : metrics_) {
      metrics.test_metrics.push_back({metric.name, {}});
      if (in_.validation_data != nullptr) metrics.validation_metrics.push_back({metric.name, {}});
    }
    const bool evaluates = last || is_due(in_.spec.evaluation.every_epochs);
    if (in_.validation_data != nullptr && evaluates) {
      const Evaluation evaluation = evaluate_epoch(in_, in_.state, *in_.validation_data, hooks_, metrics_);
      if (!evaluation.finished) return end_by_request();
      metrics.validation_loss = evaluation.loss;
      metrics.validation_metrics = evaluation.metrics;
    }
    const bool tests_now =
        step::measures_test_data_each_time(in_.spec) ? evaluates : last && in_.validation_data == nullptr;
    if (in_.evaluation_data != nullptr && tests_now) {
      const Evaluation evaluation = evaluate_epoch(in_, in_.state, *in_.evaluation_data, hooks_, metrics_);
      if (!evaluation.finished) return end_by_request();
      metrics.test_loss = evaluation.loss;
      metrics.test_metrics = evaluation.metrics;
    }
    decide_end(metrics);
    if (at_.ended.empty() && at_.step >= course_.total_steps() && at_.step == in_.spec.max_steps)
      at_.ended = "max_steps";
    if (averages() && in_.spec.averaging.adaptive) {
      at_.averaging.period = period();
      at_.averaging.period = step::adapted_period(in_.spec.averaging, at_.averaging, metrics.train_loss);
    }
    at_.plateau = step::after_epoch(at_.plateau, in_.spec.schedule, metrics, in_.entries);
    const bool save_now = last || !at_.ended.empty() || is_due(in_.spec.checkpoint.every_epochs) || saving_.is_due(at_);
    ++at_.epoch;
    const bool pauses = is_pause();
    at_.step_in_epoch = 0;
    at_.loss_sum = at_.correct = at_.epoch_seconds = at_.epoch_wait_seconds = 0;
    at_.samples = 0;
    metrics.train_seconds = elapsed();
    if (hooks_.on_epoch) hooks_.on_epoch(metrics);
    if (save_now || pauses) save();
    if (hooks_.tell_epoch) hooks_.tell_epoch(metrics);
    return true;
  }

  bool is_due(int64_t every_epochs) const { return every_epochs > 0 && (at_.epoch + 1) % every_epochs == 0; }

  bool averages() const { return in_.training.has(program::Phase::averaging); }

  double elapsed() const { return seconds_before_ + steady_seconds() - begin_; }

  void save() {
    driver_.finish();
    at_.train_seconds = elapsed();
    saving_.save(at_);
  }

  const FitInputs& in_;
  const data::DatasetInfo& info_;
  const Hooks& hooks_;
  step::Position at_;
  bool has_classes_ = false;  // something to be right about
  const spec::Course course_;
  const int shares_;  // of a batch, one of each rank that divides it
  int64_t shards_;    // of a batch, or grains, which this process computes one after the other
  const std::vector<MetricEntry> metrics_;
  step::StepScalars scalars_;
  program::Driver driver_;
  const std::optional<double> max_seconds_;  // of training time, the run's earlier parts included
  const std::function<bool()> wants_stop_;   // of this rank: asked to, or out of time
  Consensus consensus_;
  SharedErrors errors_;
  Saving saving_;
  StepTimes step_times_;
  Relief relief_;
  std::array<char, 64> position_text_{};
  std::string_view position_;                // of the step, in that text
  step::Round round_;                        // of ranks that train apart
  std::optional<step::NoiseMetrics> noise_;  // of the step at hand, where it is measured
  double seconds_before_ = 0, begin_ = 0;
};

}  // namespace

FitResult fit(const FitInputs& inputs, const step::Position& position, const Hooks& hooks) {
  return Loop(inputs, position, hooks).run();
}

}  // namespace weft::train
