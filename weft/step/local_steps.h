// Model averaging: ranks train on their own for some steps, then all go on with the mean of what they have become
// (local SGD, Lin et al. 2018), for links where an exchange in every step is too dear. Averaged are the weights with
// all that belongs to them: momenta and other slots, running statistics, averages. With a slow momentum (SlowMo, Wang
// et al. 2019, algorithm 1), with a the weights after the mean before, x the mean, r the largest learning rate since
// then:
//   u' = slow_momentum u + (a - x) / r      x' = a - slow_learning_rate r u'      a' = x'
// Slots "slow_momentum" (u) and "anchor" (a), which begins as a copy of the weights. An adaptive period (Wang and Joshi
// 2019, section 4.2) is chosen anew after each epoch:
//   period' = ceil(sqrt(loss / first loss) longest period), or, where that is no less, half of the period before
#pragma once

#include <cstdint>
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

/// The graph that makes the mean over the ranks of all that `step` and `update`, where it is a graph of its own,
/// change. Its slots go to `slots`. Of one rank, which is its own mean, the slow momentum is left.
Graph build_averaging(const Graph& step, const Graph* update, const spec::RunSpec& spec,
                      const std::vector<TrainedParameter>& trained, int ranks, std::vector<SlotSpec>& slots);

/// The period after an epoch with this training loss.
int64_t adapted_period(const spec::AveragingSpec& spec, const AveragingState& state, double loss);

/// What happened in the steps since the last mean, of which a rank knows its own part only.
class Round {
 public:
  explicit Round(comm::Communicator* ranks) : ranks_(ranks) {}

  struct Step {
    StepMetrics metrics;
    double correct = 0;
  };
  /// Allocates nothing where it was reserved for so many.
  void reserve(int64_t steps) { steps_.reserve(static_cast<size_t>(steps)); }
  void add(const Step& step) { steps_.push_back(step); }
  int64_t size() const { return static_cast<int64_t>(steps_.size()); }
  /// What a rank wants to happen after the round.
  struct Wishes {
    bool stop = false;      // it was asked to
    bool exchange = false;  // of the times of steps
  };
  /// Makes losses and right answers those of all ranks, which all call it. Returns what any of them wants.
  Wishes agree(const Wishes& own);
  /// In all, for the others, to agree.
  double waited_seconds() const { return meter_.waited_seconds(); }
  const std::vector<Step>& steps() const { return steps_; }
  /// The mean of the losses; the largest rate.
  double loss() const;
  double rate() const;
  void begin_anew() { steps_.clear(); }

 private:
  comm::Communicator* ranks_;
  comm::WaitMeter meter_;
  std::vector<Step> steps_;
};

}  // namespace weft::step
