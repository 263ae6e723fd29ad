// The learning-rate range tests of runs as a figure, for `weft plot --range-test`.
#pragma once

#include <string>
#include <vector>

#include "weft/plot/figure.h"

namespace weft::report {

/// The loss over the logarithm of the rate: of each step faint, smoothed, and where the choice lies. Error(usage) for a
/// run without a range test.
plot::Figure draw_range_tests(const std::vector<std::string>& paths);

}  // namespace weft::report
