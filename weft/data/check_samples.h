// Which samples of a data set cannot be read.
#pragma once

#include <string>
#include <vector>

#include "weft/data/dataset.h"

namespace weft::data {

/// Reads all of them and gives the message of each that fails, in their order.
std::vector<std::string> unreadable_samples(const Dataset& dataset, int threads);

}  // namespace weft::data
