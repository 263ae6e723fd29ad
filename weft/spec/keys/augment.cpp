// [augment]: what is done to the pictures of a training batch.
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> augment_keys() {
  using Part = AugmentSpec;
  return KeySection<Part>("augment", [](RunSpec& spec) -> Part& { return spec.augment; })
      .add("normalise", &Part::normalise, {.help = "by the mean and deviation of each channel"})
      .add("crop_padding", &Part::crop_padding,
           {.low = 0, .high = 1024, .unit = "pixels", .help = "pixels; 0: no random crop"})
      .add("padding", &Part::padding, {.choices = {"zero", "reflect"}, .help = "zero or reflect"})
      .add("flip", &Part::flip, {.choices = {"none", "random", "alternating"}, .help = "none, random or alternating"})
      .add("resized_crop", &Part::resized_crop,
           {.low = 0, .high = 1, .help = "smallest share of the picture in a crop; 0: off"})
      .add("rotate", &Part::rotate, {.low = 0, .high = 180, .unit = "degrees", .help = "degrees, either way"})
      .add("brightness", &Part::brightness, {.low = 0, .high = 1, .help = "factors from 1 - this to 1 + this"})
      .add("contrast", &Part::contrast, {.low = 0, .high = 1, .help = "likewise"})
      .add("saturation", &Part::saturation, {.low = 0, .high = 1, .help = "likewise"})
      .add("hue", &Part::hue,
           {.low = 0, .high = 0.5, .unit = "turns", .help = "turns of the colour circle, either way"})
      .add("cutout", &Part::cutout,
           {.low = 0, .high = 4096, .unit = "pixels", .help = "side of a square set to the mean, in pixels; 0: off"})
      .add("erasing", &Part::erasing, {.low = 0, .high = 1, .help = "probability that a rectangle is set to the mean"})
      .add("mixup", &Part::mixup, {.low = 0, .high = 100, .help = "alpha: images mixed in pairs; 0: off"})
      .add("cutmix", &Part::cutmix, {.low = 0, .high = 100, .help = "alpha: a box of another image; 0: off"})
      .take();
}

}  // namespace weft::spec
