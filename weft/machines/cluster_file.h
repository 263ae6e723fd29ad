// A cluster file that says enough of a cluster to plan and simulate runs on it: today's cluster.toml (comm/measure.h),
// with a device, how many of them there are, the network above the hosts, prices and failures.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/comm/links/links.h"
#include "weft/machines/device_file.h"

namespace weft::machines {

/// Hosts, or units of the level below, behind a link that they share.
struct NetworkLevel {
  std::string name;                    // "rack"
  int hosts = 0;                       // in each unit of this level
  double uplink_bytes_per_second = 0;  // of a unit, each way, to the rest
  double latency_seconds = 0;          // of a message that leaves the unit, beside the link's own
  friend bool operator==(const NetworkLevel&, const NetworkLevel&) = default;
};

/// Of one host. 0: not given.
struct Price {
  double per_host_hour = 0, spot_per_host_hour = 0;
  std::string currency = "USD", date;
  friend bool operator==(const Price&, const Price&) = default;
};

/// What goes wrong, and what it costs. Rates are of a Poisson process.
struct Failures {
  double per_device_hour = 0;
  std::optional<double> spot_interruptions_per_host_hour;  // empty: not given
  double restart_seconds = 300;              // from a failure until steps run again, on hosts that are there
  double repair_seconds = 4 * 3600;          // until a host that failed is there again
  double checkpoint_bytes_per_second = 1e9;  // of each host, to where checkpoints lie
  friend bool operator==(const Failures&, const Failures&) = default;
};

/// How steps of equal ranks differ. A step of a rank takes its own time times exp(jitter z), z standard normal; a share
/// of the devices is slower than the others, always, by `slow_factor`.
struct Stragglers {
  double jitter = 0;
  double slow_share = 0, slow_factor = 1;
  friend bool operator==(const Stragglers&, const Stragglers&) = default;
};

struct ClusterFile {
  std::string name;                  // of the file, without .toml, unless the file says another
  std::string file;                  // for messages: its path, or "cluster NAME" of one that comes with weft
  std::optional<DeviceFile> device;  // empty: the devices are as the one here
  int hosts = 1;                     // that can be had
  int devices_per_host = 1;          // ranks of each host
  /// Links between two devices of a host: what one device sends while another sends too.
  comm::LinkCosts in_host;
  /// Of all that devices of a host send at a time to others of it, each way; kUnlimited: nothing but their links.
  double in_host_shared_bytes_per_second = comm::kUnlimited;
  /// Of a host, through all its adapters together, each way.
  comm::LinkCosts between_hosts;
  int adapters_per_host = 1;           // one message takes one of them
  std::vector<NetworkLevel> levels;    // above the hosts, the innermost first; empty: every host reaches each alike
  double summed_bytes_per_second = 0;  // of operands that a device adds to others, as comm::ClusterCosts has it
  double host_memory_bytes = 0;        // 0: not given
  int cores_per_host = 0;              // of processors; 0: not given
  /// Of devices that are not equally fast: rates of rank i by those of the device file. Empty: all are 1.
  std::vector<double> speeds;
  Price price;
  Failures failures;
  Stragglers stragglers;

  int ranks() const { return hosts * devices_per_host; }
  double speed_of(int rank) const {
    return static_cast<size_t>(rank) < speeds.size() ? speeds[static_cast<size_t>(rank)] : 1;
  }
  friend bool operator==(const ClusterFile&, const ClusterFile&) = default;
};

/// `path` is for messages; a device is looked for beside it (DEVICE.toml), then among those that come with weft.
/// Error(data) naming the key, what is wrong and the next step, for a key that is missing, unknown or contradicts
/// another.
ClusterFile parse_cluster(std::string_view text, const std::string& path);

/// `name`: a file, or the name of a cluster that comes with weft ("p3_16xlarge"). Error(usage) where there is neither,
/// with the nearest name; errors of parse_cluster().
ClusterFile read_cluster(const std::string& name);
/// The same of a device.
DeviceFile read_device(const std::string& name);

/// Error(data) naming the file where it has a price of spot machines but not how often they are interrupted, so that
/// they would look as if they never were.
void require_interruptions(const ClusterFile& cluster);

/// All *.toml of a directory that are cluster files, by name. Error(usage) where it holds none.
std::vector<ClusterFile> read_clusters(const std::string& directory);

}  // namespace weft::machines
