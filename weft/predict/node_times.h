// Where the predicted times of nodes and of exchanges are from: what was measured on this machine, or what files say of
// one that is not here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weft/device/op_times.h"
#include "weft/passes/support/pass_context.h"
#include "weft/predict/host_cores.h"

namespace weft::predict {

struct NodeTimes {
  std::function<OpEstimate(const NodeSignature& node, const std::string& kernel)> of;
  double seconds_per_node = 0;  // of a step beside its nodes' kernels
  double common_spread = 0.05;  // of what errs alike in all nodes: the machine's pace on another day
  std::string describe;         // "412 ops measured on this machine"
  /// Of ranks of this host; null where none was measured.
  std::shared_ptr<const SharedExchanges> exchanges = {};
};

/// By measured times; what was not measured is interpolated. `exact`: see OpTimes::estimate().
NodeTimes measured_times(const std::shared_ptr<const OpTimes>& times, bool exact = true);
/// By a cost model, of which a step may be off by so much (a standard deviation of the logarithm).
NodeTimes modelled_times(const std::shared_ptr<const CostModel>& costs, int threads, double spread);

/// Of a rank that takes so many times as long, and why: "on the slowest rank".
NodeTimes slowed(NodeTimes times, double factor, std::string_view why);
/// Of one of the host's ranks, which take turns where they have more threads than there are cores.
NodeTimes in_turns(NodeTimes times, const HostCores& host);

/// How exchanges between ranks are done, and what they take.
struct ExchangeTimes {
  int ranks = 1, ranks_per_host = 1;  // that divide the batch
  /// Seconds of a collective of this op ("all_reduce"), of so many bytes of the operands of one rank.
  std::function<double(std::string_view op, int64_t bytes)> of;
  /// The same along another axis of the mesh ("tensor"), and of messages ("pipeline"). Null: as `of`.
  std::function<double(std::string_view axis, std::string_view op, int64_t bytes)> along = {};
  /// Whether the rank computes while they are under way; in memory that ranks share, their own threads do the work.
  bool hides = true;
  double spread = 0.2;
  std::string describe;
  /// What passes weigh exchanges by; nothing: ranks_of(). Ranks of one host weigh by rates that are the same on every
  /// machine, so that a recipe's step is the same there, whatever was measured.
  std::optional<passes::Ranks> weighed_by = {};

  /// Of an exchange along this axis.
  double seconds(std::string_view axis, std::string_view op, int64_t bytes) const;
};

/// By the two numbers that passes plan with. Along each axis.
ExchangeTimes exchange_by(const passes::Ranks& ranks, int ranks_per_host);

/// Of ranks on one host: as it was measured there, and what was not as `otherwise` has it. `sizes`: of the groups along
/// the axes data and tensor.
struct GroupSizes {
  int data = 1, tensor = 1;
};
ExchangeTimes exchange_in_memory(ExchangeTimes otherwise, const std::shared_ptr<const SharedExchanges>& measured,
                                 const GroupSizes& sizes);

}  // namespace weft::predict
