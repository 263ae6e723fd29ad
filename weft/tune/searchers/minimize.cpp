#include "weft/tune/searchers/minimize.h"

#include <cmath>
#include <cstddef>
#include <deque>
#include <utility>

namespace weft::tune {

namespace {

constexpr size_t kMemory = 8;
constexpr double kEnough = 1e-4;  // of the decrease that the gradient promises (Armijo)
constexpr double kSmallGradient = 1e-6;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t index = 0; index < a.size(); ++index) sum += a[index] * b[index];
  return sum;
}

/// A step and the change of the gradient that it made.
struct Curvature {
  std::vector<double> step, change;
  double product = 0;  // of the two, above 0
};

/// Minus the inverse Hessian, as far as the last steps tell it, times the gradient.
std::vector<double> direction_of(const std::vector<double>& gradient, const std::deque<Curvature>& memory) {
  std::vector<double> direction = gradient;
  std::vector<double> weights;
  for (auto one = memory.rbegin(); one != memory.rend(); ++one) {
    weights.push_back(dot(one->step, direction) / one->product);
    for (size_t index = 0; index < direction.size(); ++index) direction[index] -= weights.back() * one->change[index];
  }
  if (!memory.empty()) {
    const double scale = memory.back().product / dot(memory.back().change, memory.back().change);
    for (double& value : direction) value *= scale;
  }
  for (size_t place = 0; place < memory.size(); ++place) {
    const Curvature& one = memory[place];
    const double weight = weights[memory.size() - 1 - place] - dot(one.change, direction) / one.product;
    for (size_t index = 0; index < direction.size(); ++index) direction[index] += weight * one.step[index];
  }
  for (double& value : direction) value = -value;
  return direction;
}

}  // namespace

Minimum minimize(const SmoothFunction& function, std::vector<double> start, int steps) {
  std::vector<double> gradient(start.size()), next_gradient(start.size());
  Minimum best{std::move(start), 0};
  best.value = function(best.at, gradient);
  std::deque<Curvature> memory;
  for (int step = 0; step < steps && dot(gradient, gradient) > kSmallGradient * kSmallGradient; ++step) {
    std::vector<double> direction = direction_of(gradient, memory);
    double slope = dot(direction, gradient);
    if (!(slope < 0)) {  // what was remembered misleads
      memory.clear();
      direction = direction_of(gradient, memory);
      slope = dot(direction, gradient);
    }
    double length = memory.empty() ? std::fmin(1.0, 1.0 / std::sqrt(-slope)) : 1.0;
    Minimum next;
    bool is_better = false;
    for (int halving = 0; halving < 25 && !is_better; ++halving, length /= 2) {
      next.at = best.at;
      for (size_t index = 0; index < next.at.size(); ++index) next.at[index] += length * direction[index];
      next.value = function(next.at, next_gradient);
      is_better = next.value <= best.value + kEnough * length * slope;  // false for NaN
    }
    if (!is_better) {
      if (memory.empty()) break;
      memory.clear();
      continue;
    }
    Curvature made{next.at, next_gradient, 0};
    for (size_t index = 0; index < next.at.size(); ++index) {
      made.step[index] -= best.at[index];
      made.change[index] -= gradient[index];
    }
    made.product = dot(made.step, made.change);
    const double decrease = best.value - next.value;
    best = std::move(next);
    std::swap(gradient, next_gradient);
    if (made.product > 1e-12 * dot(made.step, made.step)) memory.push_back(std::move(made));
    if (memory.size() > kMemory) memory.pop_front();
    if (decrease < 1e-10 * (1 + std::abs(best.value))) break;
  }
  return best;
}

}  // namespace weft::tune
