// How long a node is predicted to run. Passes and plans ask it to weigh nodes of one graph against each other: what to
// recompute, which exchange to hide behind which node, whether a fusion pays.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "weft/graph/graph.h"

namespace weft {

/// Where a prediction is from.
enum class CostSource {
  rated,     // the larger of arithmetic and memory traffic, at the rates of a profile
  profiled,  // what this node took in an earlier run
  measured,  // what its kernel took here, by itself
};
std::string_view name_of(CostSource source);

struct NodeCost {
  double seconds = 0;
  CostSource source = CostSource::rated;
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  /// Of one run on so many threads of the device that the model is of. 0 for views, which do nothing.
  virtual NodeCost cost_of(const NodeSignature& node, int threads) const = 0;
  /// Where its figures are from, for reports: "rated by the profile 'default'".
  virtual std::string describe() const { return "of an unnamed model"; }
  double seconds(const NodeSignature& node, int threads) const { return cost_of(node, threads).seconds; }
};

/// The rates of a device, per thread, as a file names them: device/default_profile.toml is one.
struct DeviceProfile {
  std::string name;
  double flops_per_second = 0;  // of products in f32
  double bytes_per_second = 0;
  double narrow_speedup = 1;  // of products of 16-bit numbers over those in f32
  double call_seconds = 0;    // of a kernel, however small its work
  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};
/// The file that comes with weft.
DeviceProfile default_profile();
/// Error(data) beginning with `file` and the line for a key that is missing, unknown or no number above 0.
DeviceProfile parse_device_profile(std::string_view text, const std::string& file);
/// Parses back to the same.
std::string print_device_profile(const DeviceProfile& profile);

/// A model that knows nothing but rates: the larger of a node's arithmetic and its memory traffic.
std::shared_ptr<const CostModel> rated_costs(const DeviceProfile& profile = default_profile());

}  // namespace weft
