// When a run will reach a value of a metric, from when earlier runs did.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/predict/prediction.h"

namespace weft::predict {

/// A metric of an earlier run: after which share of its steps it had which value.
struct Curve {
  std::vector<double> shares, values;
  std::vector<double> seconds = {};  // of training until then; empty: not known
  /// How much of it says something of the new run: 1 of the same recipe with another seed; less of a recipe that is
  /// only alike.
  double likeness = 1;
};

/// Steps until an evaluation first finds the value reached or passed, as a share of all; nullopt: none does.
std::optional<double> share_reached(const Curve& curve, double target, bool higher_is_better);

/// A run's seconds per step until `share` of it, over those of its first tenth. nullopt where that is no later than a
/// tenth, or where the seconds are not known.
std::optional<double> pace_after_a_tenth(const Curve& curve, double share);

struct Target {
  std::string metric;
  double value = 0;
  bool higher_is_better = true;
};

/// Of a run that takes so long. nullopt where there is no earlier run. The logarithms of the shares are taken to be
/// normally distributed, with the mean of the earlier runs. Their deviation is not taken from a few runs alone, which
/// may agree by chance: kUsualSpread counts as much as kUsualRuns of them (a scaled inverse chi-squared prior, Gelman
/// et al. 2013, "Bayesian Data Analysis", 3.3), and the range is that of Student's distribution. How the pace changes
/// after a tenth of a run is learnt in the same way, from the runs that reached the target: kUsualRuns count as having
/// kept theirs but for kUsualPaceSpread.
std::optional<TimeToTarget> estimate_time(const std::vector<Curve>& curves, const Target& target,
                                          const Interval& run_seconds);

inline constexpr double kUsualSpread = 0.14, kUsualPaceSpread = 0.05, kUsualRuns = 3;

/// Steps until the run reaches the target, by where its own curve leads (learning_curve.h): the first step at which the
/// lower end, the median and the upper end of what is extrapolated are there. Infinite: not within `most_steps`. Points
/// are steps done, above 0 and rising, with the metric then. nullopt of fewer than kFewestCurvePoints.
std::optional<Interval> steps_by_own_curve(const std::vector<std::pair<int64_t, double>>& points, const Target& target,
                                           int64_t most_steps);

}  // namespace weft::predict
