// Where a study stands while it is searched.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/tune/study/study.h"

namespace weft::tune {

struct TuneStatus {
  int64_t done = 0, wanted = 0;  // trials; wanted 0: as many as the time allows
  int64_t running = 0, failed = 0, refused = 0;
  std::optional<StudyTrial> best = {};
  std::optional<double> seconds_left = {};  // where that can be told
};

/// What is left of the trials that run, as predicted, and as long for each further one as the others take in the mean.
/// Predictions count as many times as trials took longer so far than predicted. `places`: trials that can train at a
/// time. `seconds_left` of the time for the search, where there is a limit.
TuneStatus status_of(const StudySettings& settings, const std::vector<StudyTrial>& trials, int64_t wanted,
                     int64_t places, std::optional<double> seconds_left);

}  // namespace weft::tune
