// What trials have measured, as a Gaussian process takes it.
#pragma once

#include <cstddef>
#include <vector>

#include "weft/tune/searchers/gaussian_process.h"
#include "weft/tune/searchers/searcher.h"

namespace weft::tune {

struct Observed {
  std::vector<Features> points;
  std::vector<double> losses;  // of these
  std::vector<Features> running;
};

/// Of trials that got equally far, as far as there are enough of them (Falkner et al., BOHB): a loss after fewer epochs
/// is another function. Failed trials count as the worst. At least one trial has finished.
Observed observe(const SearchState& state);

/// The best half of those that are kept, and the newest.
void keep_at_most(Observed& observed, size_t count);

/// Losses as the process takes them: mean 0, deviation 1, outliers drawn in.
std::vector<double> standardised(std::vector<double> losses);

/// Lengths and noise for what was observed, of a hundred points at most.
KernelParameters fitted(const Observed& observed, const std::vector<bool>& is_choice);

}  // namespace weft::tune
