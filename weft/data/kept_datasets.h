// Data that a process opens again and again, as one that trains many trials does: read once.
#pragma once

#include <vector>

#include "weft/data/open_dataset.h"

namespace weft::data {

/// The same kinds, whose data stay open: who opens a split by the same spec again gets the same samples. Keeps the four
/// that were asked for last. Data that decode pictures are opened anew each time: what they may keep in memory is
/// another decision in each run. Files that change meanwhile are not read again. Samples that were found damaged stay
/// found. Not thread-safe, but for what Dataset says of its own.
std::vector<DatasetKind> keep_datasets(const std::vector<DatasetKind>& kinds);

}  // namespace weft::data
