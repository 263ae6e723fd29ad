// What a new run says before it begins: what has no effect, what its data lack, what its plan costs.
#pragma once

#include "weft/library/library.h"
#include "weft/program/prepared_run.h"
#include "weft/run/run.h"

namespace weft::run {

/// Lines to options.note, where there is one.
void note_beginning(const Library& library, program::PreparedRun& run, const RunOptions& options);

}  // namespace weft::run
