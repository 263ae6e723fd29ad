// Which values led to a trial, epoch by epoch: a copy of another trial has trained under that one's values before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/tune/study/study.h"

namespace weft::tune {

/// The values under which the epochs behind `begin` up to `end` were trained.
struct Stretch {
  int64_t trial = 0;  // that trained them
  int64_t begin = 0, end = 0;
  Values values = {};
};

/// The oldest first, the last one of the trial itself; one where it is no copy.
std::vector<Stretch> lineage_of(const std::vector<StudyTrial>& trials, const StudyTrial& trial);
/// "epochs 1 to 4"
std::string epochs_in_words(const Stretch& stretch);

}  // namespace weft::tune
