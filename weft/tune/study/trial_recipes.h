// The files with the recipes of a study's trials. Trials begin without waiting for the disk, so a power cut may leave a
// recipe empty until sync().
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "weft/tune/study/study.h"

namespace weft::tune {

class TrialRecipes {
 public:
  explicit TrialRecipes(const Study& study) : study_(study) {}

  /// Error(io).
  void write(int64_t trial, const std::string& recipe);
  /// Whether there is one that is not empty.
  bool has(int64_t trial) const;
  /// What was written outlives a power cut from then on. Error(io).
  void sync();

 private:
  const Study& study_;
  std::set<int64_t> unsynced_;  // trials
};

}  // namespace weft::tune
