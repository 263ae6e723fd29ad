// The data on which all trials of a study train.
#pragma once

#include "weft/library/library.h"
#include "weft/spec/data_description.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

/// As the recipe of the study names them, with its assignments. Error where they cannot be opened.
spec::DataDescription data_of(const StudySettings& settings, const Library& library);

/// Error where the data cannot be opened, or are no longer those with which the study began: trials on others cannot be
/// compared. A study that knows none yet keeps these.
void require_same_data(Study& study, const Library& library);

}  // namespace weft::tune
