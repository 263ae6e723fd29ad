#include "weft/planner/restarts.h"

#include <algorithm>
#include <cmath>

#include "weft/simulate/whole_run.h"

namespace weft::planner {

Restarts restarts_of(const machines::ClusterFile& cluster, int64_t hosts, bool spot, double seconds, double state_bytes,
                     bool shared) {
  const machines::Failures& failures = cluster.failures;
  const double per_host_hour = failures.per_device_hour * cluster.devices_per_host +
                               (spot ? failures.spot_interruptions_per_host_hour.value_or(0) : 0);
  Restarts found;
  if (per_host_hour <= 0 || seconds <= 0) return found;
  const auto count = static_cast<double>(hosts);
  const double mean = 3600 / (per_host_hour * count);
  found.mean_seconds_between = mean;
  found.checkpoint_seconds = state_bytes / (failures.checkpoint_bytes_per_second * (shared ? count : 1));
  // Of a run that is shorter than the interval there is one, at its end.
  found.interval_seconds = std::min(seconds, std::max(1.0, simulate::young_interval(found.checkpoint_seconds, mean)));
  const double piece = (found.interval_seconds + found.checkpoint_seconds) / mean;
  found.factor = mean * std::exp(failures.restart_seconds / mean) * std::expm1(piece) / found.interval_seconds;
  found.expected = found.factor * seconds / mean;
  return found;
}

}  // namespace weft::planner
