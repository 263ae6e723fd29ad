// Computes the summary of a run from what it planned, where it stands and what was measured.
#pragma once

#include "weft/program/prepared_run.h"
#include "weft/program/process_memory.h"
#include "weft/run/checkpoint/manifest.h"
#include "weft/run/summary.h"

namespace weft::run {

/// `memory`: of the process, since just before the planned memory was allocated.
Summary summary_of(program::PreparedRun& run, const step::Position& position, const Manifest& manifest,
                   const State& state, const program::MemoryGrowth& memory);

}  // namespace weft::run
