// What is said of a run before it begins: prediction.json of a run directory, and what `weft plan` prints.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "weft/predict/interval.h"
#include "weft/predict/memory.h"
#include "weft/predict/step_time.h"
#include "weft/predict/strategy.h"

namespace weft::predict {

/// Steps of one shape.
struct StagePrediction {
  int64_t first_step = 0, steps = 0;
  int64_t batch = 0, accumulate = 1, image_height = 0;  // as in spec::Stage
  StepTime time = {};
  /// Per step: waits for batches that loaders do not make in time, and what they take of the cores that compute. Empty:
  /// not known.
  std::optional<double> loading_seconds = {};

  Interval step() const;
  int64_t samples() const { return batch * accumulate; }
};

struct Energy {
  Interval kilowatt_hours;
  double peak_watts = 0;  // of all devices together
};

struct Cost {
  Interval amount;      // of the run; 0 where nothing says how long it is
  double per_hour = 0;  // of all hosts
  std::string currency = "USD";
};

/// When the run is expected to reach a value of a metric.
struct TimeToTarget {
  std::string metric;  // "test_accuracy"
  double target = 0;
  Interval share;  // of the steps of the whole run, until it is reached
  Interval seconds;
  int64_t runs = 0, reached = 0;  // earlier ones on this machine, and those of them that reached it
  /// How the pace of runs changed after their first tenth: the factor, and the standard deviation of its logarithm.
  double pace = 1, pace_spread = 0;
};

struct Prediction {
  std::string model = {}, data = {}, device = {};
  Strategy strategy = {};
  std::string times_from = {}, exchange_from = {};  // where the figures are from
  std::vector<StagePrediction> stages = {};
  MemoryPrediction memory = {};  // of the shape that takes the most
  std::vector<LinkTraffic> traffic = {};
  std::string item = "samples";  // what is counted besides samples: images, rows, tokens
  int64_t items_per_sample = 1;
  double epochs = 0;
  Interval evaluation_seconds = {};  // of all evaluations
  std::optional<Energy> energy = {};
  std::optional<Cost> cost = {};
  std::optional<TimeToTarget> to_target = {};

  int64_t steps() const;
  /// The mean over the run's steps.
  Interval step() const;
  Interval samples_per_second() const;
  /// Of all steps and evaluations.
  Interval run_seconds() const;
  /// The stage that takes the largest share of the run's time.
  const StagePrediction& longest() const;
};

nlohmann::ordered_json to_json(const Prediction& prediction, bool with_timeline = false);
/// What prediction.json says. Error(data) naming `file` where it is none.
Prediction prediction_from(const nlohmann::json& json, const std::string& file);

/// The tables of `weft plan`.
std::string describe(const Prediction& prediction);
/// "0.21 s (0.19 to 0.23 s)"
std::string in_words(const Interval& seconds);
/// "24.50"; below a tenth with two significant digits.
std::string in_money(double amount);

}  // namespace weft::predict
