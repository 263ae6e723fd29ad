// Model averaging: ranks train on their own for some steps, then continue with the mean of their weights (local SGD,
// Lin et al. 2018). It suits links on which an exchange in every step costs too much. The mean covers the weights and
// all that belongs to them: momenta and other slots, running statistics, averages. With averaging.states_every = N only
// each Nth mean does so; the others cover the weights alone, and each rank maintains its own momenta meanwhile. A run
// stops, saves and evaluates only where all ranks have one state, so none of that changes its course. With a slow
// momentum (SlowMo, Wang et al. 2019, algorithm 1), let a be the weights after the previous mean, x the new mean, and r
// the largest learning rate in between:
//   u' = slow_momentum u + (a - x) / r      x' = a - slow_learning_rate r u'      a' = x'
// Slots: "slow_momentum" (u) and "anchor" (a), which begins as a copy of the weights. Each epoch chooses an adaptive
// period anew (Wang and Joshi 2019, section 4.2):
//   period' = ceil(sqrt(loss / first loss) longest period), or, where that is no less, half of the previous period
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/wait_meter.h"
#include "weft/graph/graph.h"
#include "weft/spec/run_spec.h"
#include "weft/step/metrics.h"
#include "weft/step/optimizers/optimizer.h"

namespace weft::step {

/// Scalars of the graph of a mean: r, and 1 / r, or 0 where r is.
inline constexpr const char *kRoundRate = "round_rate", *kInverseRoundRate = "inverse_round_rate";

/// Whether each rank trains on its own for some steps.
inline bool trains_apart(const spec::RunSpec& spec) { return spec.averaging.period > 0; }

/// The graphs that average over the ranks. With one rank, only the slow momentum remains of them.
struct AveragingGraphs {
  Graph states;                       // all states that the step changes
  std::optional<Graph> weights = {};  // the weights alone; where the spec has such means
  std::vector<SlotSpec> slots = {};   // of both
};

/// `update` is null where it is not a graph of its own.
AveragingGraphs build_averaging(const Graph& step, const Graph* update, const spec::RunSpec& spec,
                                const std::vector<TrainedParameter>& trained, int ranks);

/// The period after an epoch with this training loss.
int64_t adapted_period(const spec::AveragingSpec& spec, const AveragingState& state, double loss);

/// Results of the steps since the last mean. Each rank knows only its own part.
class Round {
 public:
  explicit Round(comm::Communicator* ranks) : ranks_(ranks) {}

  struct Step {
    StepMetrics metrics;
    double correct = 0;
  };
  /// Reserves space, so that so many calls of add() allocate nothing.
  void reserve(int64_t steps) { steps_.reserve(static_cast<size_t>(steps)); }
  void add(const Step& step) { steps_.push_back(step); }
  int64_t size() const { return static_cast<int64_t>(steps_.size()); }
  /// What a rank asks for after the round.
  struct Wishes {
    bool stop = false;      // it was asked to
    bool exchange = false;  // of the times of steps
  };
  /// Replaces losses and right answers by those of all ranks. All ranks must call it. Returns what any of them asks
  /// for.
  Wishes agree(const Wishes& own);
  /// Total seconds that this rank waited for the others in agree().
  double waited_seconds() const { return meter_.waited_seconds(); }
  const std::vector<Step>& steps() const { return steps_; }
  /// Mean of the losses; largest learning rate.
  double loss() const;
  double rate() const;
  void begin_anew() { steps_.clear(); }

 private:
  comm::Communicator* ranks_;
  comm::WaitMeter meter_;
  std::vector<Step> steps_;
};

}  // namespace weft::step
