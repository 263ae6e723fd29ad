// What a run came to, from what it planned, where it stands and what was measured.
#pragma once

#include "weft/program/prepared_run.h"
#include "weft/run/checkpoint/manifest.h"
#include "weft/run/summary.h"

namespace weft::run {

/// `rss_before`: the memory of the process before all that was planned was allocated.
Summary summary_of(program::PreparedRun& run, const step::Position& position, const Manifest& manifest,
                   const State& state, int64_t rss_before);

}  // namespace weft::run
