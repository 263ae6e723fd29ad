// What a run came to, from what it planned, where it stands and what was measured.
#pragma once

#include "weft/train/checkpoint/manifest.h"
#include "weft/train/prepared_run.h"
#include "weft/train/summary.h"

namespace weft::train {

/// `rss_before`: the memory of the process before all that was planned was allocated.
Summary summary_of(PreparedRun& run, const Position& position, const Manifest& manifest, const State& state,
                   int64_t rss_before);

}  // namespace weft::train
