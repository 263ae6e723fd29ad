#include "weft/infer/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "weft/base/error.h"

namespace weft::infer {

namespace {

/// p^(1/temperature) of each, where the largest is 1.
std::vector<double> weights_of(std::span<const float> probabilities, float largest, double temperature) {
  std::vector<double> weights;
  weights.reserve(probabilities.size());
  for (const float p : probabilities)
    weights.push_back(std::pow(static_cast<double>(p) / static_cast<double>(largest), 1 / temperature));
  return weights;
}

/// Makes all zero but the likeliest ones that the options leave; of equal ones the first stay.
void keep_likeliest(std::vector<double>& weights, const SamplingOptions& options) {
  if (options.top_k <= 0 && options.top_p >= 1) return;
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  size_t kept = order.size();
  if (options.top_k > 0) kept = std::min(kept, static_cast<size_t>(options.top_k));
  if (options.top_p < 1) {
    double sum = 0, reached = 0;
    for (size_t at = 0; at < kept; ++at) sum += weights[order[at]];
    size_t count = 0;
    while (count < kept && (count == 0 || reached < options.top_p * sum)) reached += weights[order[count++]];
    kept = count;
  }
  for (size_t at = kept; at < order.size(); ++at) weights[order[at]] = 0;
}

}  // namespace

int64_t sample(std::span<const float> probabilities, const SamplingOptions& options, RandomStream& random) {
  const auto none = std::find_if(probabilities.begin(), probabilities.end(), [](float p) { return std::isnan(p); });
  if (none != probabilities.end())
    fail(ErrorKind::numeric,
         "the model gives NaN as the probability of token {}; its weights are damaged or have diverged",
         none - probabilities.begin());
  const auto largest = std::max_element(probabilities.begin(), probabilities.end());
  const int64_t likeliest = largest - probabilities.begin();
  if (options.temperature == 0) return likeliest;
  std::vector<double> weights = weights_of(probabilities, *largest, options.temperature);
  keep_likeliest(weights, options);
  double left = static_cast<double>(random.uniform()) * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t at = 0; at < weights.size(); ++at) {
    left -= weights[at];
    if (left < 0) return static_cast<int64_t>(at);
  }
  return likeliest;
}

}  // namespace weft::infer
