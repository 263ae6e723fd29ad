// Whether a data set is what it says, and which of its samples cannot be read.
#pragma once

#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"

namespace weft::data {

/// Error(usage) where the parts of `info` do not fit together.
void check_info(const DatasetInfo& info);

/// Reads all of them with their targets and gives the message of each that fails, in their order.
std::vector<std::string> unreadable_samples(const Dataset& dataset, int threads);

}  // namespace weft::data
