// Cross-layer equalisation (Nagel et al. 2019, "Data-free quantization through weight equalization and bias
// correction", section 4.1): a channel between two layers may be scaled down behind the first and up before the second
// without a change of what they compute, where nothing but a relu stands between. The scales that make both layers'
// ranges of the channel alike (equation 11) lose least to rounding with one scale per tensor.
#pragma once

#include <vector>

#include "weft/quantize/weights.h"

namespace weft::quantize {

/// sqrt(first / second) of the channels' largest magnitudes, as equation 11; 1 where either has none.
std::vector<float> equalizing_scales(const std::vector<float>& first, const std::vector<float>& second);

/// The largest magnitude of each row.
std::vector<float> row_ranges(const Matrix& weights);

}  // namespace weft::quantize
