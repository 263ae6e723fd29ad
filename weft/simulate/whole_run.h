// Whole runs over weeks: steps, checkpoints, failures and what a run does about them, as a simulation of events by
// seeded draws. Time is of the run, work is in seconds of steps at full strength.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::simulate {

struct RunModel {
  int hosts = 1;
  int devices_per_host = 1;
  int hosts_per_replica = 1;  // that hold the weights together, and stand still together
  double failures_per_device_hour = 0;
  double interruptions_per_host_hour = 0;  // of spot machines
  double restart_seconds = 300;            // from a failure until steps run again, on hosts that are there
  double repair_seconds = 4 * 3600;        // until a failed host is there again
  double checkpoint_seconds = 10;          // for which steps stand still
  double restore_seconds = 10;             // reading one, beside the restart

  double failures_per_second() const {
    return (hosts * devices_per_host * failures_per_device_hour + hosts * interruptions_per_host_hour) / 3600;
  }
};

/// What a run does about failures.
struct RunPolicy {
  double checkpoint_interval_seconds = 3600;  // of steps, between checkpoints; infinite: none
  int spare_hosts = 0;                        // that wait, and take a failed one's place
  bool goes_on_with_fewer = false;            // hosts, while a failed one is repaired; else all wait for it
  double fewer_efficiency = 1;                // of n-1 hosts, beside (n-1)/n
  int fewest_hosts = 1;
};

struct RunOutcome {
  double seconds = 0;             // simulated
  double useful_seconds = 0;      // of steps at full strength whose results were kept
  double checkpoint_seconds = 0;  // spent
  double lost_seconds = 0;        // of steps that had to be repeated
  double down_seconds = 0;        // of restarts, and waiting for hosts
  double slowed_seconds = 0;      // that fewer hosts cost
  int64_t failures = 0;
  double goodput() const { return seconds > 0 ? useful_seconds / seconds : 0; }
};

/// For so long. Failures of hosts are a Poisson process; drawn by `seed`.
RunOutcome simulate_run(const RunModel& model, const RunPolicy& policy, double seconds, uint64_t seed);

/// Until so much work is done.
RunOutcome simulate_until(const RunModel& model, const RunPolicy& policy, double useful_seconds, uint64_t seed);

/// sqrt(2 C M) for checkpoints of C seconds and a mean time M between failures (Young 1974).
double young_interval(double checkpoint_seconds, double mean_seconds_between_failures);
/// The higher-order form (Daly 2006, equation 37); M where C is 2 M or more.
double daly_interval(double checkpoint_seconds, double mean_seconds_between_failures);

/// The interval of the best goodput in the simulation, over so many seconds, by golden section around Daly's, with the
/// same failures for each.
double best_interval(const RunModel& model, RunPolicy policy, double seconds, uint64_t seed);

/// Without and with what weft does, in words for a table.
struct Campaign {
  struct Row {
    std::string policy;
    RunPolicy settings;
    RunOutcome outcome;
  };
  std::vector<Row> rows;
};
/// Of so many device-hours: no checkpoint, one per `usual_interval`, Daly's interval, the simulation's best, with a
/// spare host, going on with fewer. Error(usage) where that would be too many failures or checkpoints to simulate.
Campaign campaign(const RunModel& model, double device_hours, double usual_interval_seconds, uint64_t seed);

}  // namespace weft::simulate
