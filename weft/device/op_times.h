// What ops took within steps on this machine, by kernel and shape, and from it what other shapes will take.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/device/cost_model.h"
#include "weft/device/machine_rates.h"
#include "weft/device/shared_exchanges.h"
#include "weft/graph/graph.h"

namespace weft {

/// What a node does, as far as its time depends on it.
struct OpWork {
  std::string op, kernel, family;  // family: the op's class of work
  std::string options = {};        // its attributes, as text: windows, strides, axes
  bool narrow = false;             // computes products of 16-bit numbers
  double flops = 0;
  double bytes = 0;               // read and written, each operand once
  std::array<double, 3> sides{};  // bytes of the first two operands and of the first result
};
OpWork work_of(const NodeSignature& node, const std::string& kernel);

/// One measured node.
struct OpTime {
  OpWork work;
  double seconds = 0;  // the median of a step's runs
  double spread = 0;   // of the runs: half the distance of the quartiles over the median
  std::string of;      // the model in whose step it ran
};

/// What a node is predicted to take.
struct OpEstimate {
  double seconds = 0;
  double spread = 0;  // one standard deviation of the logarithm of its error
  CostSource source = CostSource::rated;
};

/// How a whole step compares with the sum of its nodes.
struct StepOverhead {
  double seconds_per_node = 0;  // the least of all steps
  int64_t steps = 0;            // that were measured; 0: not known
};
/// Of all steps of both: other programs only ever make it more.
StepOverhead least_of(const StepOverhead& a, const StepOverhead& b);

class OpTimes {
 public:
  OpTimes() = default;
  /// `rates`: what the machine can do at most, from which times of other shapes are read off.
  explicit OpTimes(MachineRates rates) : rates_(std::move(rates)) {}

  const std::optional<MachineRates>& rates() const { return rates_; }
  void set_rates(MachineRates rates) { rates_ = std::move(rates); }
  bool empty() const { return times_.empty(); }
  size_t size() const { return times_.size(); }
  const std::map<std::string, OpTime>& all() const { return times_; }
  StepOverhead overhead = {};
  int64_t ranks = 1;               // that computed at once on the host, each with as many threads: at most
  SharedExchanges exchanges = {};  // between ranks of as many threads

  /// `key`: signature_key() of the node. Replaces what is known of the same node and kernel.
  void add(const std::string& key, OpTime time);
  /// Of the same machine: they replace what is known of the same, where there are any; the overhead is the least of
  /// both.
  void add(const OpTimes& others);
  /// Null where this very node was not measured with this kernel.
  const OpTime* find(const std::string& key, const std::string& kernel) const;

  /// In this order: what was measured of this very node; the measured nodes of the same op and kernel that are nearest
  /// in flops and bytes, by how far each is above its roofline, on logarithmic scales, but of a batch below all that
  /// were measured no less than below_all_measured(); the same of other kernels of the op, then of its class of work;
  /// the roofline, times what measured nodes take above it. `exact` false leaves out the first, to judge the others by.
  /// Views take nothing. Error(internal) without rates.
  OpEstimate estimate(const NodeSignature& node, const std::string& kernel, bool exact = true) const;
  /// The floor of the node at the machine's rates, with what a call takes.
  double roofline(const OpWork& work) const { return roofline(work, work.bytes); }

 private:
  struct Group {
    std::vector<const OpTime*> times;
    double spread = 0;  // of what each is above its roofline, about what the others would make of it
  };
  /// Made at the first question, of times that stay where they are: a copy makes its own.
  struct Groups {
    std::map<std::string, Group> by_name = {};
    bool are_made = false;
    Groups() = default;
    Groups(const Groups&) {}
    Groups& operator=(const Groups&) {
      by_name.clear();
      are_made = false;
      return *this;
    }
  };
  const Group& group(const std::string& name) const;
  /// As if the operands came from the memory level that holds so many bytes.
  double roofline(const OpWork& work, double held_bytes) const;
  /// The logarithm of how far the work is above its roofline, by this time of other work: as far as that is. But a
  /// kernel that falls behind a near level of memory has a pace of its own, and keeps it where the level is slower.
  double above(const OpTime& time, const OpWork& work) const;
  /// Seconds of a layer in a batch that is smaller than those of its measured times: what every call takes, and what
  /// follows the roofline. 0 where they do not tell: there are fewer than two sizes, or no call takes anything beside.
  double below_all_measured(const Group& group, const OpWork& work) const;
  std::optional<OpEstimate> from_neighbours(const Group& group, const OpWork& work, double farther) const;
  void prepare() const;

  std::optional<MachineRates> rates_;
  std::map<std::string, OpTime> times_;  // by kernel and key
  mutable Groups groups_;
};

}  // namespace weft
