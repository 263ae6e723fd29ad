#include "weft/train/ranks/assign_grains.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "weft/base/error.h"

namespace weft::train {

std::vector<int64_t> assign_grains(int64_t grains, std::span<const double> seconds) {
  const auto ranks = static_cast<int64_t>(seconds.size());
  check(ranks >= 1 && grains >= ranks, "each rank takes at least one grain");
  std::vector<int64_t> assigned(seconds.size(), 1);
  using Next = std::pair<double, size_t>;  // when the rank would have done one more; of equal ones the lower rank
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  for (size_t rank = 0; rank < seconds.size(); ++rank) next.emplace(2 * seconds[rank], rank);
  for (int64_t left = grains - ranks; left > 0; --left) {
    const size_t rank = next.top().second;
    next.pop();
    ++assigned[rank];
    next.emplace(static_cast<double>(assigned[rank] + 1) * seconds[rank], rank);
  }
  return assigned;
}

double largest_time(std::span<const int64_t> grains, std::span<const double> seconds) {
  double largest = 0;
  for (size_t rank = 0; rank < grains.size(); ++rank)
    largest = std::max(largest, static_cast<double>(grains[rank]) * seconds[rank]);
  return largest;
}

}  // namespace weft::train
