#include "weft/step/augmentations/entries.h"

namespace weft::step {

std::vector<AugmentationEntry> all_augmentations() { return {color_entry(), cutout_entry(), erasing_entry()}; }

}  // namespace weft::step
