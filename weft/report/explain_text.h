// What `weft explain` prints for people.
#pragma once

#include <string>

#include "weft/base/table.h"
#include "weft/report/explained.h"
#include "weft/run/run_directory.h"

namespace weft::report {

/// Classes of ops, kernels and the nodes furthest above their floor, so many of these.
std::string time_text(const Explained& explained, size_t rows);
/// What each part of that says: the machine with the floors, the nodes, and of the memory below what it adds up to and
/// what stands at the peak.
std::string floor_text(const Explained& explained);
Table nodes_table(const Explained& explained, size_t rows);
std::string memory_summary(const Explained& explained);
std::string peak_text(const Explained& explained);
Table peak_table(const Explained& explained);
/// The arena over the step, and what stands in it at its peak.
std::string memory_text(const Explained& explained);
/// What training measured, beside what was planned; empty where the run has not ended.
std::string audit_text(const run::RunDirectory& run);
/// What each pass took and did.
std::string passes_text(const Explained& explained);

}  // namespace weft::report
