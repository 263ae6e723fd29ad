// [augment]: what is done to the pictures of a training batch.
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> augment_keys(const Entries& entries) {
  using Part = AugmentSpec;
  return KeySection<Part>("augment", [](RunSpec& spec) -> Part& { return spec.augment; })
      .add("normalise", &Part::normalise, {.help = "by the mean and deviation of each channel"})
      .add("mean", &Part::mean,
           {.low = -1e6, .high = 1e6, .help = "of each channel, of pixels in 0 to 1; empty: that of the training data"})
      .quiet()
      .add("deviation", &Part::deviation,
           {.low = kAboveZero, .high = 1e6, .help = "standard deviations, beside augment.mean"})
      .quiet()
      .add("crop_padding", &Part::crop_padding,
           {.low = 0, .high = 1024, .unit = "pixels", .help = "pixels; 0: no random crop"})
      .add("padding", &Part::padding, {.choices = {"zero", "reflect"}, .help = "zero or reflect"})
      .add("flip", &Part::flip, {.choices = {"none", "random", "alternating"}, .help = "none, random or alternating"})
      .add("resized_crop", &Part::resized_crop,
           {.low = 0, .high = 1, .help = "smallest share of the picture in a crop; 0: off"})
      .add("rotate", &Part::rotate, {.low = 0, .high = 180, .unit = "degrees", .help = "degrees, either way"})
      .add_declared(declared_keys(entries.augmentations, /*with_readers=*/false), {{"brightness", &Part::brightness},
                                                                                   {"contrast", &Part::contrast},
                                                                                   {"saturation", &Part::saturation},
                                                                                   {"hue", &Part::hue},
                                                                                   {"cutout", &Part::cutout},
                                                                                   {"erasing", &Part::erasing}})
      .add("mixup", &Part::mixup, {.low = 0, .high = 100, .help = "alpha: images mixed in pairs; 0: off"})
      .add("cutmix", &Part::cutmix, {.low = 0, .high = 100, .help = "alpha: a box of another image; 0: off"})
      .take();
}

}  // namespace weft::spec
