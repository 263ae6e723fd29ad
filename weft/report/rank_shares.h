// How the ranks of a run shared its batches, where they may have different shares.
#pragma once

#include <string>

#include "weft/run/run_directory.h"

namespace weft::report {

/// A line for the shares at the beginning and one for each change, as metrics.jsonl has them; empty where the batches
/// of the run are not cut into grains.
std::string rank_shares_text(const run::RunDirectory& run, int64_t grains);

}  // namespace weft::report
