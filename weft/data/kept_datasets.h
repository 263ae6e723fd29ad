// Data that a process opens again and again, as one that trains many trials does: read and decoded once.
#pragma once

#include <vector>

#include "weft/data/open_dataset.h"

namespace weft::data {

/// The same kinds, whose data stay open: who opens a split by the same spec again gets the same samples, with what was
/// decoded so far. Keeps the eight that were asked for last. Files that change meanwhile are not read again. Samples
/// that were found damaged stay found. Not thread-safe, but for what Dataset says of its own.
std::vector<DatasetKind> keep_datasets(const std::vector<DatasetKind>& kinds);

}  // namespace weft::data
