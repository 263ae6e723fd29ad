#include "weft/predict/largest_batch.h"

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"

namespace weft::predict {

namespace {

constexpr int64_t kMostSamples = 1 << 24;  // of a batch

}  // namespace

LargestBatch largest_batch(const Library& library, const PlannedModel& model, const Strategy& strategy,
                           const Place& place) {
  LargestBatch found{.has_bytes = memory_of_rank(place, strategy)};
  const int64_t parts = std::max({int64_t{1}, model.spec.virtual_ranks, model.spec.balance.grains});
  const int64_t unit = std::lcm(parts, strategy.data() * (strategy.pipeline > 1 ? strategy.micro_batches : 1));
  const auto fits = [&](int64_t units) {
    Strategy larger = strategy;
    larger.batch = units * unit;
    ++found.plans;
    try {
      const MemoryPrediction memory = memory_on(library, model, larger, place);
      if (found.has_bytes > 0 && static_cast<double>(memory.total()) > found.has_bytes) return false;
      found.memory = memory;
      found.batch = larger.batch;
      return true;
    } catch (const Error& error) {  // it cannot be kept to the recipe's memory limit
      if (error.kind() != ErrorKind::usage || found.batch == 0) throw;
      return false;
    }
  };
  if (!fits(1)) {
    Strategy smallest = strategy;
    smallest.batch = unit;
    predict_on(library, model, smallest, place);  // says what would do
    return found;
  }
  int64_t fitting = 1, beyond = 2;
  for (; beyond * unit <= kMostSamples && fits(beyond); beyond *= 2) fitting = beyond;
  if (beyond * unit > kMostSamples) return found;
  while (beyond - fitting > 1) {
    const int64_t middle = (fitting + beyond) / 2;
    (fits(middle) ? fitting : beyond) = middle;
  }
  return found;
}

}  // namespace weft::predict
