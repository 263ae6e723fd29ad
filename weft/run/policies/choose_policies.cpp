#include "weft/run/policies/choose_policies.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/memory.h"
#include "weft/comm/exchange.h"
#include "weft/comm/on_all_ranks.h"
#include "weft/program/decisions.h"
#include "weft/program/same_run.h"
#include "weft/run/policies/noise_policy.h"
#include "weft/train/fit.h"

namespace weft::run {

namespace {

// Of the run's samples, by all that is measured: gradients of the noise's parts count, too.
constexpr double kNoiseShare = 0.015, kRangeShare = 0.03, kRangeShareAlone = 0.045;
constexpr int64_t kFewestSteps = 12, kMostSteps = 200;  // of a range test
constexpr int64_t kNoiseEvery = 2;                      // steps
constexpr int64_t kFewestNoise = 4;                     // measurements
// The test begins and ends so far from the optimiser's own rate.
constexpr double kBelow = 100, kAbove = 100;
// A run shall have so many steps, whatever the noise.
constexpr int64_t kFewestRunSteps = 200;

/// A run of a few steps that is thrown away.
class Probe {
 public:
  Probe(const PolicyInputs& inputs, const spec::RunSpec& spec)
      : inputs_(inputs),
        run_(program::prepare_run(inputs.library, spec, inputs.tuning, {}, inputs.ranks, spec.cluster,
                                  spec.cost_profile)) {}

  program::PreparedRun& run() { return *run_; }
  /// Of the run that the recipe describes.
  int64_t steps_of_run() const { return run_->course.total_steps(); }
  int64_t samples_of_run() const { return run_->course.samples_before(steps_of_run()); }
  bool was_stopped() const { return was_stopped_; }

  /// Runs so many steps by this schedule, from the initial state; fewer where `is_over` says so after one of them, or
  /// the loss is not finite.
  void fit(const spec::ScheduleSpec& schedule, double learning_rate, int64_t steps, train::Hooks hooks,
           const std::function<bool()>& is_over = {}) {
    spec::RunSpec& spec = run_->spec;
    spec.schedule = schedule;
    spec.optimizer.learning_rate = learning_rate;
    spec.max_steps = steps;
    run_->course = spec::Course(spec, run_->run_data.training->size());
    State state = inputs_.initial_state(*run_);
    if (run_->ranks != nullptr) program::require_same(run_->ranks, program::traits_of(*run_, state));
    data::Loader loader(
        *run_->run_data.training,
        program::training_loader_options(spec, run_->run_data.description, run_->training_share, run_->library));
    run_->make_executors();
    const std::vector<comm::Collectives*> collectives = run_->runtime.all_collectives();
    hooks.save = [](const step::Position&) {};
    hooks.stop_requested = [&] {
      was_stopped_ = was_stopped_ || (inputs_.stop_requested && inputs_.stop_requested());
      return was_stopped_ || (is_over && is_over());
    };
    const train::FitInputs fit_inputs{
        spec,        run_->training, run_->evaluation, state,   loader,      nullptr,
        run_->ranks, collectives,    run_->library,    nullptr, &run_->step, run_->noise ? &*run_->noise : nullptr};
    try {
      train::fit(fit_inputs, {}, hooks);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::numeric) throw;  // else the rate was too large
    }
    double stopped = was_stopped_ ? 1 : 0;  // on any rank
    if (run_->ranks != nullptr) comm::all_reduce_max(*run_->ranks, {&stopped, 1}, "reason to stop");
    was_stopped_ = stopped > 0;
  }

 private:
  const PolicyInputs& inputs_;
  std::unique_ptr<program::PreparedRun> run_;
  bool was_stopped_ = false;
};

/// What the steps compute, and nothing around them. The validation part stays, so that the training part is the run's.
spec::RunSpec probe_spec(const spec::RunSpec& spec) {
  spec::RunSpec probe = spec;
  probe.measured = {};
  probe.stop = {};
  probe.max_time.clear();
  probe.evaluation.every_steps = 0;
  probe.metrics.noise_every = 0;
  if (probe.schedule.name == "plateau") probe.schedule = {.name = "constant"};
  // One rate for all that is trained, and the momentum that belongs to its peak.
  for (auto& [name, group] : probe.optimizer.groups) group.schedule.clear();
  spec::MomentumScheduleSpec& momentum = probe.optimizer.momentum_schedule;
  if (momentum.name == "one_cycle") probe.optimizer.momentum = momentum.low;
  if (momentum.name == "piecewise") probe.optimizer.momentum = momentum.momenta.front();
  momentum = {};
  return probe;
}

class Chooser {
 public:
  Chooser(const PolicyInputs& inputs, spec::RunSpec& spec, Policies& policies)
      : inputs_(inputs), spec_(spec), policies_(policies) {}

  Measuring choose() {
    const spec::RunSpec before = spec_;
    if ((spec_.measured.needs_noise() && !measure_noise()) || (spec_.measured.learning_rate && !test_range())) {
      spec_ = before;
      return Measuring::stopped;
    }
    spec_.measured = {};
    policies_.learning_rate = spec_.optimizer.learning_rate;
    policies_.batch = spec_.batch;
    policies_.warmup_steps = spec_.schedule.warmup_steps;
    if (comm::is_first(inputs_.ranks)) note(describe_policies(policies_));
    return Measuring::done;
  }

 private:
  /// Line by line.
  void note(const std::string& text) const {
    if (!inputs_.note) return;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) inputs_.note(line);
  }

  /// False where the user stopped it.
  bool measure_noise() {
    spec::RunSpec probe_of = probe_spec(spec_);
    probe_of.metrics.noise_every = kNoiseEvery;
    Probe probe(inputs_, probe_of);
    policies_.run_samples = probe.samples_of_run();
    const int64_t step_samples = spec_.batch * spec_.accumulate;
    // Every second step computes up to a gradient more.
    const auto affordable = static_cast<int64_t>(kNoiseShare * static_cast<double>(policies_.run_samples) /
                                                 (1.5 * static_cast<double>(step_samples)));
    const int64_t steps = std::min(affordable, kMostSteps);
    std::vector<predict::GradientNorms> norms;
    if (steps > kNoiseEvery * kFewestNoise) {
      train::Hooks hooks;
      hooks.on_noise = [&](const step::NoiseMetrics& noise) { norms.push_back(noise); };
      probe.fit({.name = "constant"}, spec_.optimizer.learning_rate, steps, std::move(hooks));
      if (probe.was_stopped()) return false;
      policies_.measured_samples += steps * step_samples * 3 / 2;
    } else {
      note(
          fmt::format("the run is too short to measure the gradient noise in 1.5 % of it: it keeps the batch of {} and "
                      "has no warm-up",
                      spec_.batch));
    }
    // Noise grows as the loss falls: the later half says more of the run.
    norms.erase(norms.begin(), norms.begin() + static_cast<std::ptrdiff_t>(norms.size() / 2));
    policies_.noise = predict::estimate_noise_scale(norms);
    const std::string decided = comm::decided_by_first(inputs_.ranks, "batch and warm-up", [&] {
      int64_t batch = spec_.batch, warmup = spec_.schedule.warmup_steps;
      const std::optional<predict::Interval> scale =
          policies_.noise ? std::optional(policies_.noise->scale) : std::nullopt;
      if (spec_.measured.batch) batch = chosen_batch(scale, probe.run());
      if (spec_.measured.warmup_steps) {
        const int64_t run_steps = policies_.run_samples / (batch * spec_.accumulate);
        warmup = warmup_of_noise(scale, batch * spec_.accumulate, run_steps / 10);
      }
      return nlohmann::json{batch, warmup}.dump();
    });
    const auto values = nlohmann::json::parse(decided).get<std::vector<int64_t>>();
    spec_.batch = values[0];
    spec_.schedule.warmup_steps = values[1];
    return true;
  }

  int64_t chosen_batch(std::optional<predict::Interval> scale, const program::PreparedRun& run) const {
    if (scale)
      for (double* end : {&scale->low, &scale->expected, &scale->high}) *end /= static_cast<double>(spec_.accumulate);
    BatchBounds bounds{.multiple_of = run.training_share.shares};
    bounds.most = std::min(bounds.most, policies_.run_samples / (spec_.accumulate * kFewestRunSteps));
    bounds.most = std::min(bounds.most, run.run_data.training->size() / spec_.accumulate);
    int64_t batch = batch_of_noise(scale, bounds, spec_.batch);
    // What is planned grows no faster than the batch.
    int64_t limit = memory_limit_bytes() / comm::ranks_of_host(inputs_.ranks);
    if (const std::optional<int64_t> wanted = parse_bytes(spec_.memory_limit)) limit = std::min(limit, *wanted);
    const double each = static_cast<double>(run.planned_total_bytes) / static_cast<double>(spec_.batch);
    while (batch > spec_.batch && each * static_cast<double>(batch) > static_cast<double>(limit)) batch /= 2;
    return batch;
  }

  /// False where the user stopped it.
  bool test_range() {
    Probe probe(inputs_, probe_spec(spec_));
    policies_.run_samples = probe.samples_of_run();
    const double share = spec_.measured.needs_noise() ? kRangeShare : kRangeShareAlone;
    const int64_t steps = std::min(kMostSteps, static_cast<int64_t>(share * static_cast<double>(probe.steps_of_run())));
    if (steps < kFewestSteps) {
      note(fmt::format("a run of {} steps is too short for a range test in {} % of them: it takes the rate {} of '{}'",
                       probe.steps_of_run(), 100 * share, spec_.optimizer.learning_rate, spec_.optimizer.name));
      policies_.range.emplace();
      return true;
    }
    const double own = spec_.optimizer.learning_rate;  // of the optimiser, as resolve() has filled it in
    const double low = own / kBelow, growth = kBelow * kAbove;
    const auto first_epoch = static_cast<double>(probe.run().course.steps_of_first_epoch());
    std::vector<RatedLoss> losses;
    losses.reserve(static_cast<size_t>(steps));
    train::Hooks hooks;
    hooks.on_step = [&](const step::StepMetrics& step) { losses.push_back({step.learning_rate, step.loss}); };
    probe.fit({.name = "exponential", .every_epochs = static_cast<double>(steps - 1) / first_epoch, .factor = growth},
              low, steps, std::move(hooks), [&] { return has_diverged(losses); });
    if (probe.was_stopped()) return false;
    policies_.measured_samples += static_cast<int64_t>(losses.size()) * spec_.batch * spec_.accumulate;
    policies_.range = judge_range(std::move(losses));
    const std::string decided = comm::decided_by_first(
        inputs_.ranks, "learning rate", [&] { return nlohmann::json(policies_.range->chosen.value_or(own)).dump(); });
    spec_.optimizer.learning_rate = nlohmann::json::parse(decided).get<double>();
    return true;
  }

  const PolicyInputs& inputs_;
  spec::RunSpec& spec_;
  Policies& policies_;
};

}  // namespace

Measuring choose_policies(const PolicyInputs& inputs, spec::RunSpec& spec, Policies& policies) {
  if (!spec.measured.any()) return Measuring::nothing;
  return Chooser(inputs, spec, policies).choose();
}

}  // namespace weft::run
