#include "weft/predict/prediction.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::predict {

Interval StagePrediction::step() const {
  const double waited = loading_seconds.value_or(0), whole = time.whole() + waited;
  // What is known of loading is known to a factor only.
  const double loading = whole > 0 ? 0.3 * waited / whole : 0;
  return interval_of(whole, std::hypot(time.spread, loading));
}

int64_t Prediction::steps() const {
  int64_t all = 0;
  for (const StagePrediction& stage : stages) all += stage.steps;
  return all;
}

namespace {

/// Of what stages of one machine err in, they err alike.
Interval sum_of_steps(const std::vector<StagePrediction>& stages) {
  Interval sum;
  for (const StagePrediction& stage : stages) {
    const Interval all = stage.step().times(static_cast<double>(stage.steps));
    sum = {sum.low + all.low, sum.expected + all.expected, sum.high + all.high};
  }
  return sum;
}

}  // namespace

Interval Prediction::step() const {
  const int64_t all = steps();
  if (stages.empty()) return {};
  return all > 0 ? sum_of_steps(stages).times(1 / static_cast<double>(all)) : stages.front().step();
}

Interval Prediction::samples_per_second() const {
  double samples = 0;
  for (const StagePrediction& stage : stages) samples += static_cast<double>(stage.steps * stage.samples());
  Interval seconds = sum_of_steps(stages);
  if (steps() == 0 && !stages.empty()) {
    samples = static_cast<double>(stages.front().samples());
    seconds = stages.front().step();
  }
  if (seconds.low <= 0) return {};
  return {samples / seconds.high, samples / seconds.expected, samples / seconds.low};
}

Interval Prediction::run_seconds() const {
  const Interval training = sum_of_steps(stages);
  return {training.low + evaluation_seconds.low, training.expected + evaluation_seconds.expected,
          training.high + evaluation_seconds.high};
}

const StagePrediction& Prediction::longest() const {
  check(!stages.empty(), "a prediction of no stage");
  return *std::max_element(stages.begin(), stages.end(), [](const StagePrediction& a, const StagePrediction& b) {
    return static_cast<double>(a.steps) * a.step().expected < static_cast<double>(b.steps) * b.step().expected;
  });
}

}  // namespace weft::predict
