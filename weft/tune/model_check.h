// Options of models that no trial could be built with, found before a study begins.
#pragma once

#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/library/library.h"
#include "weft/tune/ranges/range_text.h"
#include "weft/tune/study/study.h"

namespace weft::tune {

/// Builds the model for each choice of its name and its options, and for both ends of each range. Error(usage), naming
/// the place where the range was written, for one with which no model is built: neither by the recipe nor with some
/// other values of the space.
void require_models(const StudySettings& settings, const std::vector<RangeText>& ranges, const data::DatasetInfo& info,
                    const Library& library);

}  // namespace weft::tune
