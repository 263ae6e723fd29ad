// What attention makes of the scores of one query: the numerators of their softmax.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace weft::reference {

/// Each score becomes exp(score - the largest one); their sum. Of no scores 1: zeros, as a product without terms gives.
inline double make_softmax_weights(std::vector<double>& scores) {
  if (scores.empty()) return 1;
  const double top = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - top);
  return sum;
}

}  // namespace weft::reference
