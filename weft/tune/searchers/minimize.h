// The least value of a smooth function of some dozens of numbers, by its gradient: L-BFGS (Nocedal and Wright,
// "Numerical Optimization", algorithm 7.5) with a line search that backtracks.
#pragma once

#include <functional>
#include <vector>

namespace weft::tune {

/// The value at a place; sets the gradient. May be infinite, which the search avoids.
using SmoothFunction = std::function<double(const std::vector<double>& at, std::vector<double>& gradient)>;

struct Minimum {
  std::vector<double> at;
  double value = 0;
};

/// From `start`, in at most so many steps.
Minimum minimize(const SmoothFunction& function, std::vector<double> start, int steps);

}  // namespace weft::tune
