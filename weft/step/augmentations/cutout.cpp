// Cutout (DeVries and Taylor 2017): a square around a random pixel is set to the mean.
#include "weft/data/augment/erase.h"
#include "weft/spec/run_spec.h"
#include "weft/step/augmentations/entries.h"

namespace weft::step {

AugmentationEntry cutout_entry() {
  return {.name = "cutout",
          .summary = "a square is set to the mean",
          .keys = {{.name = "cutout",
                    .value = int64_t{0},
                    .low = 0,
                    .high = 4096,
                    .unit = "pixels",
                    .help = "side of a square set to the mean, in pixels; 0: off"}},
          .make = [](const spec::AugmentSpec& spec) -> std::optional<data::PixelChange> {
            if (spec.cutout == 0) return std::nullopt;
            return data::cutout_change(spec.cutout);
          }};
}

}  // namespace weft::step
