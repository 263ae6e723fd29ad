// Which trial a free worker takes: one that was interrupted, one that the scheduler lets go on, or a new one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/tune/searchers/searcher.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

class TrialChooser {
 public:
  /// Keeps references to library and study. `most`: trials of the study in all; 0: no limit. `owner`: of what it
  /// chooses. `note` may be empty.
  TrialChooser(const Library& library, const Study& study, int64_t most, std::string owner,
               std::function<void(const std::string&)> note);

  /// For Study::change(). Trials that constraints refused cost nothing and count for nothing. The run of a new trial
  /// that has a parent is a copy of the parent's as it is now: nobody lets the parent go on until that copy is there.
  std::optional<StudyTrial> choose(const std::vector<StudyTrial>& trials);
  /// After a choice of nothing: something may be chosen once a running trial, here or elsewhere, has ended.
  bool waits_for_others() const { return waits_for_others_; }
  /// Whether every point of the space has been tried.
  bool is_exhausted() const { return is_exhausted_; }

 private:
  std::optional<StudyTrial> of_begun(const Job& job, const std::vector<StudyTrial>& counted, size_t trials);
  bool counts(const StudyTrial& trial, size_t trials) const;
  bool lacks_results(const std::vector<StudyTrial>& trials) const;
  std::vector<StudyTrial> told(std::vector<StudyTrial> trials) const;
  std::vector<TrialProgress> progress(const std::vector<StudyTrial>& counted) const;
  StudyTrial copied(const StudyTrial& origin, const Job& job, int64_t number) const;
  StudyTrial claimed(StudyTrial trial) const;

  const Study& study_;
  const StudySettings& settings_;
  const int64_t most_;
  const std::string owner_;
  const std::function<void(const std::string&)> note_;
  const std::unique_ptr<Searcher> searcher_;
  bool waits_for_others_ = false, is_exhausted_ = false;
};

}  // namespace weft::tune
