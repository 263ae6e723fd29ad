// Simulated tasks as a trace that Perfetto and chrome://tracing open (the Trace Event Format, in JSON).
#pragma once

#include <string>
#include <vector>

#include "weft/simulate/task_graph.h"

namespace weft::simulate {

/// A row for each stream, a slice for each task, in microseconds. Tasks of no stream lie in rows of their own, such
/// that none overlap. `process`: the name above all rows.
std::string chrome_trace(const TaskGraph& tasks, const std::vector<Span>& spans, const std::string& process);

}  // namespace weft::simulate
