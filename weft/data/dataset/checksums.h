// Whether data are still those that a run began with, and the same on all ranks.
#pragma once

#include <string>

#include "weft/data/dataset/dataset.h"

namespace weft::data {

/// XXH3 of the targets, in hexadecimal: of all samples, or of 65,536 that are spread evenly. Empty where targets are
/// files of their own, which would all have to be decoded.
std::string target_checksum(const Dataset& dataset);

/// XXH3 of 64 samples with their targets that are spread evenly, as the dataset gives them: what counts and targets do
/// not tell, such as another column of a table, at the cost of a batch.
std::string sample_checksum(const Dataset& dataset);

}  // namespace weft::data
