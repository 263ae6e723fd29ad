// What `weft simulate` prints.
#pragma once

#include <optional>
#include <string>

#include "weft/machines/cluster_file.h"
#include "weft/simulate/data_parallel.h"
#include "weft/simulate/transformer_step.h"
#include "weft/simulate/whole_run.h"

namespace weft::cli {

struct SimulationReport {
  machines::ClusterFile cluster;
  std::string model, strategy;
  int ranks = 1, batches = 1;
  int64_t batch = 1;  // samples of a step, over all ranks
  int64_t tokens_per_sample = 0;
  int64_t steps = 0;  // of the run; 0: not given
  bool is_spot = false;
  double parameters = 0;
  double seconds = 0, busy_seconds = 0, flops = 0, bytes_sent = 0;
  double memory_bytes = 0, state_bytes = 0;
  double of_linear = 0;    // 0: not known
  double speed_share = 1;  // mean rate of the ranks, by that of the device file
  simulate::StepProgram program;
  simulate::SimulatedStep step;                          // of a graph
  std::optional<simulate::TransformerStep> transformer;  // else
  int hosts_per_replica = 1;
  simulate::RunModel run_model;
  double campaign_device_hours = 0;
  simulate::Campaign campaign;

  std::string next_step;  // where it does not fit

  int hosts() const;
  /// Whether a rank has as much memory as the step needs, and else what it lacks.
  bool fits() const;
  std::string why_not() const;
  /// Of the run, with what its devices lose when they get hot.
  double run_seconds() const;
  double price_per_host_hour() const {
    return is_spot ? cluster.price.spot_per_host_hour : cluster.price.per_host_hour;
  }
  std::string title() const;
  std::string json() const;
  std::string text() const;
};

}  // namespace weft::cli
