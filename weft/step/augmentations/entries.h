// The changes of pixels that come with weft, a file each.
#pragma once

#include <vector>

#include "weft/library/entries.h"

namespace weft::step {

/// In the order in which they change a sample.
std::vector<AugmentationEntry> all_augmentations();

AugmentationEntry color_entry();
AugmentationEntry cutout_entry();
AugmentationEntry erasing_entry();

}  // namespace weft::step
