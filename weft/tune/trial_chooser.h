// Which trial a free worker takes: one that was interrupted, one that the scheduler lets go on, or a new one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/library/library.h"
#include "weft/tune/searchers/searcher.h"
#include "weft/tune/study.h"

namespace weft::tune {

class TrialChooser {
 public:
  /// Keeps references to library and study. `most`: trials of the study in all; 0: no limit. `owner`: of what it
  /// chooses. `note` may be empty.
  TrialChooser(const Library& library, const Study& study, int64_t most, std::string owner,
               std::function<void(const std::string&)> note);

  /// For Study::change(). Trials that constraints refused cost nothing and count for nothing. Error(io) where a run
  /// cannot be copied.
  std::optional<StudyTrial> choose(const std::vector<StudyTrial>& trials);
  /// After a choice of nothing: something may be chosen once a running trial, here or elsewhere, has ended.
  bool waits_for_others() const { return waits_for_others_; }
  /// The trial that the last choice, a copy of another one, takes the place of.
  std::optional<StudyTrial> take_replaced() { return std::exchange(replaced_, std::nullopt); }

 private:
  StudyTrial copied(const std::vector<StudyTrial>& trials, const Job& job, int64_t number);
  StudyTrial claimed(StudyTrial trial) const;

  const Study& study_;
  const StudySettings& settings_;
  const int64_t most_;
  const std::string owner_;
  const std::function<void(const std::string&)> note_;
  const std::unique_ptr<Searcher> searcher_;
  std::optional<StudyTrial> replaced_;
  bool waits_for_others_ = false, is_exhausted_ = false;
};

}  // namespace weft::tune
