// Where a learning curve goes: what a loss will be later, as an interval. A mixture of curves that level off,
// a + b t^-c and a + b exp(-c t) for many c, each weighted by how well it fits (Domhan, Springenberg and Hutter 2015,
// "Speeding up automatic hyperparameter optimization of deep neural networks by extrapolation of learning curves", with
// a grid in place of sampling: a and b are linear).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace weft::predict {

/// Of a loss: with a probability of 80 % it lies between low and high.
struct LossInterval {
  double low = 0, median = 0, high = 0;
};

/// Fewer points say nothing.
inline constexpr size_t kFewestCurvePoints = 4;

/// `curve`: training, such as epochs, above 0 and rising, and the loss then. nullopt for fewer points than
/// kFewestCurvePoints, where a loss is not finite, and where `at` is not behind the last point.
std::optional<LossInterval> extrapolate(const std::vector<std::pair<int64_t, double>>& curve, int64_t at);

}  // namespace weft::predict
