// Random erasing (Zhong et al. 2017): a rectangle is set to the mean.
#include "weft/data/augment/erase.h"
#include "weft/spec/run_spec.h"
#include "weft/step/augmentations/entries.h"

namespace weft::step {

AugmentationEntry erasing_entry() {
  return {.name = "erasing",
          .summary = "a rectangle is set to the mean",
          .keys = {{.name = "erasing",
                    .value = 0.0,
                    .low = 0,
                    .high = 1,
                    .help = "probability that a rectangle is set to the mean"}},
          .make = [](const spec::AugmentSpec& spec) -> std::optional<data::PixelChange> {
            if (spec.erasing == 0) return std::nullopt;
            return data::erasing_change(spec.erasing);
          }};
}

}  // namespace weft::step
