// Random brightness, contrast, saturation and hue, as torchvision's ColorJitter.
#include "weft/data/augment/augment_color.h"
#include "weft/spec/run_spec.h"
#include "weft/step/augmentations/entries.h"

namespace weft::step {

AugmentationEntry color_entry() {
  const Key share{.value = 0.0, .low = 0, .high = 1};
  const auto key = [&](const char* name, const char* help) {
    Key one = share;
    one.name = name;
    one.help = help;
    return one;
  };
  return {.name = "color",
          .summary = "random brightness, contrast, saturation and hue",
          .keys = {key("brightness", "factors from 1 - this to 1 + this"),
                   key("contrast", "likewise"),
                   key("saturation", "likewise"),
                   {.name = "hue",
                    .value = 0.0,
                    .low = 0,
                    .high = 0.5,
                    .unit = "turns",
                    .help = "turns of the colour circle, either way"}},
          .make = [](const spec::AugmentSpec& spec) -> std::optional<data::PixelChange> {
            const data::ColorRanges ranges{spec.brightness, spec.contrast, spec.saturation, spec.hue};
            if (!ranges.any()) return std::nullopt;
            return data::random_color(ranges);
          }};
}

}  // namespace weft::step
