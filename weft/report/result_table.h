// What a run came to, as `weft train` prints it at its end.
#pragma once

#include "weft/base/table.h"
#include "weft/library/library.h"
#include "weft/run/summary.h"

namespace weft::report {

/// Model and data, what the task is judged by, when it was best and why the run ended, time, speed and memory.
Table result_table(const run::Summary& summary, const Library& library);

}  // namespace weft::report
