// A study for people and as JSON: `weft tune show`, and the end of `weft tune`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/table.h"
#include "weft/library/library.h"
#include "weft/run/summary.h"
#include "weft/tune/study/lineage.h"
#include "weft/tune/study/study.h"

namespace weft::cli {

/// Trials as a table, those with results first, the best at the top; at most `rows` of them, 0: all. With several
/// objectives a mark says which trials no other one beats in all of them.
Table study_table(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials, size_t rows);

/// The same as text, with a line that says where what its cells leave out is.
std::string study_text(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials, size_t rows);

/// A row for each value that led to the trial, and of a copy of another one for the epochs of each.
void add_values(Table& table, const std::vector<tune::StudyTrial>& trials, const tune::StudyTrial& trial);

/// One JSON object. `best`: of the run of the best trial, where its test data have been measured.
std::string study_json(const tune::StudySettings& settings, const std::vector<tune::StudyTrial>& trials,
                       const std::optional<run::Summary>& best);

/// "0.9712" or "97.12 %", as reports show a metric; sizes and durations with their units.
std::string objective_in_words(const tune::Objective& objective, double value, const Library& library);

}  // namespace weft::cli
