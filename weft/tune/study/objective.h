// What a search makes better, and what it keeps to: names and numbers that are read from run directories and plans.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/library/entries.h"
#include "weft/run/metrics_history.h"

namespace weft::tune {

struct Objective {
  std::string name;  // a metric of evaluations or of training, such as "validation_accuracy", or "parameters", "memory"
                     // (bytes, planned), "size" (bytes of the deployed constants), "latency" (seconds of the engine for
                     // one sample) or "seconds" (of training)
  bool higher_is_better = false;
  friend bool operator==(const Objective&, const Objective&) = default;

  bool is_metric() const;
  /// As searchers have it: the lower the better.
  double loss(double value) const { return higher_is_better ? -value : value; }
};

/// "validation_accuracy,size". Error(usage) for an unknown name, with the nearest one.
std::vector<Objective> parse_objectives(const std::string& text, const Entries& entries);
std::string print_objectives(const std::vector<Objective>& objectives);

/// What the plan of a trial says before it starts.
struct TrialPlan {
  int64_t parameters = 0;
  int64_t memory = 0;  // bytes, all that training adds
  int64_t epochs = 0;  // that begin
  double seconds = 0;  // as predicted for all of them; 0: not known
};

/// What a trained run is as it is deployed (deployed_run.h).
struct Deployed {
  int64_t bytes = 0;  // of its weights and other constants
  double latency_seconds = 0;
};
/// Whether an objective is of that.
bool needs_deployment(const std::vector<Objective>& objectives);
bool needs_latency(const std::vector<Objective>& objectives);

/// "memory <= 800MB"
struct Constraint {
  std::string text;
  std::string name;  // "memory" or "parameters"
  bool at_most = true;
  double bound = 0;

  double value(const TrialPlan& plan) const;
  bool holds(const TrialPlan& plan) const { return at_most ? value(plan) <= bound : value(plan) >= bound; }
  /// "memory 1.20 GB"
  std::string in_words(const TrialPlan& plan) const;
};

/// Error(usage) for anything else.
Constraint parse_constraint(const std::string& text);

/// What a run has measured of a metric.
struct Measured {
  std::vector<std::pair<int64_t, double>> curve;  // epochs done, and the value; without values that are not finite
  bool is_known = false;                          // the run records it
};

/// Of one metric after each evaluated epoch behind `begun`: what a copy of another trial's run has from that does not
/// count.
Measured measured_curve(const run::MetricsHistory& history, const std::string& metric, int64_t begun = 0);
/// Of training, behind the epoch `begun`.
double measured_seconds(const run::MetricsHistory& history, int64_t begun = 0);

/// The values of all objectives of a run that has stopped: metrics at the evaluation that is the best by the first
/// metric, as the checkpoint `best` has it, behind the epoch `begun`. nullopt where a metric has not been measured, or
/// an objective needs `deployed` and there is none.
std::optional<std::vector<double>> measure(const run::MetricsHistory& history, const std::vector<Objective>& objectives,
                                           const TrialPlan& plan, const std::optional<Deployed>& deployed = {},
                                           int64_t begun = 0);

}  // namespace weft::tune
