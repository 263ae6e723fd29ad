// The learning-rate range test: a few steps whose rate grows from one to the next show where the loss falls fastest and
// where it stops falling (Smith 2015, "Cyclical learning rates for training neural networks"; Smith and Topin 2017).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::run {

/// One step of the test.
struct RatedLoss {
  double rate = 0;
  double loss = 0;  // of the step's batch, before the step changed the weights
};

struct RangeTest {
  std::vector<RatedLoss> steps = {};    // finite losses, by rising rate
  std::vector<double> smoothed = {};    // the loss of each
  std::optional<double> steepest = {};  // the rate where the smoothed loss falls fastest
  std::optional<double> lowest = {};    // the rate where it is lowest
  /// The peak for a run; nullopt where the loss falls at no rate.
  std::optional<double> chosen = {};
};

/// Whether the loss has left the range in which rates are compared: no rate above the last one will do.
bool has_diverged(const std::vector<RatedLoss>& steps);

/// The rule: the loss is smoothed over the rates, and the choice is the geometric mean of the rate where it falls
/// fastest and of the rate where it is lowest. The last two steps, or the last 6 % of them, do not count. The first is
/// safe and often slow, the second is where the loss begins to rise. Rounded to three digits.
RangeTest judge_range(std::vector<RatedLoss> steps);

/// The rule in words, for files and users.
extern const char* const kRangeRule;

}  // namespace weft::run
