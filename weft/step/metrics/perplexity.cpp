// exp(loss): among how many tokens, equally likely, the model is undecided on average.
#include <cmath>

#include "weft/step/metrics/entries.h"

namespace weft::step {

MetricEntry perplexity_entry() {
  return {.name = "perplexity",
          .summary = "exp(loss) per token",
          .label = "perplexity",
          .higher_is_better = false,
          .value = [](std::span<const double> /*sums*/, const MetricTotals& totals) -> std::optional<double> {
            return std::exp(totals.loss);
          }};
}

}  // namespace weft::step
