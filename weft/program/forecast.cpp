#include "weft/program/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <vector>

#include "weft/base/format.h"
#include "weft/program/driver.h"
#include "weft/program/synthetic.h"
#include "weft/step/monitor.h"
#include "weft/step/step_scalars.h"
#include "weft/step/virtual_ranks.h"

namespace weft::program {

namespace {

constexpr size_t kFewestRuns = 5, kMostRuns = 50;

/// The fastest and the mean of some runs after a first one: other processes only ever make a step slower, so that the
/// fastest tells what the step takes alone.
Duration measure(const std::function<void()>& run, double seconds) {
  run();
  std::vector<double> times;
  double spent = 0;
  while (times.size() < kFewestRuns || spent < seconds) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    spent += times.back();
    if (times.size() == kMostRuns) break;
  }
  return {*std::min_element(times.begin(), times.end()), spent / static_cast<double>(times.size())};
}

Duration measured_step(PreparedRun& run, const spec::StepShape& shape, int64_t accumulate, State& state,
                       double seconds) {
  Driver driver(run.training, state);
  driver.select(shape);
  const SyntheticBatch batch(driver.graph(), run.run_data.description.info.classes);
  batch.bind(driver.executor());
  step::StepScalars scalars(run.spec, run.course, /*ranks=*/1, /*place=*/0, run.library);
  driver.bind_scalars(scalars);
  const int64_t shards = step::shards_of_rank(run.spec, 1);
  const Duration measured = measure(
      [&] { driver.run_step(scalars, {.step = 0, .parts = accumulate, .rate_factor = 1e-6}, shards, {}); }, seconds);
  driver.finish();
  return measured;
}

Duration measured_evaluation(PreparedRun& run, int64_t samples, State& state, double seconds) {
  Driver driver(run.evaluation, state);
  driver.select(samples);
  const SyntheticBatch batch(driver.graph(), run.run_data.description.info.classes);
  batch.bind(driver.executor());
  return measure([&] { driver.run(); }, seconds);
}

}  // namespace

double evaluations_of(const spec::RunSpec& spec, bool of_test, int64_t steps) {
  const spec::EvaluationSpec& evaluation = spec.evaluation;
  if (of_test && !step::measures_test_data_each_time(spec)) return 1;
  const double of_epochs =
      evaluation.every_epochs > 0 ? std::ceil(spec.epochs / static_cast<double>(evaluation.every_epochs)) : 1;
  const bool by_steps = !of_test && evaluation.every_steps > 0;
  return of_epochs + (by_steps ? static_cast<double>(steps / evaluation.every_steps) : 0);
}

std::string in_words(const Duration& duration) {
  constexpr double kShared = 1.5;
  std::string text = "about " + human_duration(duration.alone);
  if (duration.now > kShared * duration.alone)
    text += fmt::format(" (up to {} while other processes use these cores as now)", human_duration(duration.now));
  return text;
}

Forecast forecast(PreparedRun& run, double seconds) {
  State state = step::initial_state(run.step, static_cast<uint64_t>(run.spec.seed));
  Forecast expected{
      .step = {}, .run = {}, .steps = run.course.total_steps(), .checkpoint_bytes = step::state_bytes(run.step)};
  const std::vector<spec::Stage> stages = spec::stages_of(run.spec);
  for (size_t at = 0; at < stages.size(); ++at) {
    const auto first_step = static_cast<int64_t>(run.course.step_at(stages[at].begin()));
    const int64_t end =
        at + 1 < stages.size() ? static_cast<int64_t>(run.course.step_at(stages[at + 1].begin())) : expected.steps;
    if (end <= first_step) continue;
    expected.run.add(measured_step(run, stages[at].shape(), stages[at].accumulate, state, seconds),
                     static_cast<double>(std::min(end, expected.steps) - first_step));
  }
  expected.step.add(expected.run, 1 / std::max(1.0, static_cast<double>(expected.steps)));
  for (const data::Dataset* evaluated : run.run_data.evaluated()) {
    const int64_t samples = evaluated->size(), batch = std::min(samples, run.spec.evaluation.batch);
    expected.run.add(measured_evaluation(run, batch, state, seconds / 4),
                     evaluations_of(run.spec, evaluated == run.run_data.test.get(), expected.steps) *
                         static_cast<double>(samples) / static_cast<double>(batch));
  }
  return expected;
}

}  // namespace weft::program
