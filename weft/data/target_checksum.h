// Whether targets are still those that a run began with.
#pragma once

#include <string>

#include "weft/data/dataset.h"

namespace weft::data {

/// XXH3 of the targets, in hexadecimal: of all samples, or of 65,536 that are spread evenly. Empty where targets are
/// files of their own, which would all have to be decoded.
std::string target_checksum(const Dataset& dataset);

}  // namespace weft::data
