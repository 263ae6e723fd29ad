// What weft proposes to search in a recipe, by topics: how it trains, what changes while it trains, its augmentation.
#pragma once

#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/library/library.h"
#include "weft/spec/run_spec.h"
#include "weft/tune/ranges/range_text.h"

namespace weft::tune {

struct ProposedSearch {
  std::vector<std::string> set;   // KEY=VALUE, which all trials get before the ranges
  std::vector<RangeText> ranges;  // of keys that are not in `set`
};

/// "training" (default_space.h), "schedules", "augmentation".
const std::vector<std::string>& proposal_names();

/// A batch and images that grow over three thirds of the run, a momentum that moves against the rate, and the peak and
/// the form of the rate. Of a recipe that has such a schedule of its own, weft leaves that one alone. Images grow only
/// where `info` has images in classes and the model takes all sizes, and momentum moves only where the optimizer has
/// one. Error(usage) where the recipe cannot be resolved.
ProposedSearch propose_schedules(const spec::RunSpec& base, const data::DatasetInfo& info, const Library& library);

/// A few strengths of each augmentation, none among them, as choices. What mixes images or changes colours is for
/// images that have classes or colours. Error(usage) where `info` has no images.
ProposedSearch propose_augmentation(const spec::RunSpec& base, const data::DatasetInfo& info);

/// One of the three by its name. Error(usage) for another name, with the nearest one.
ProposedSearch propose(const std::string& name, const spec::RunSpec& base, const data::DatasetInfo& info,
                       const Library& library);

}  // namespace weft::tune
