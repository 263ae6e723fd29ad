// [loss], [loss_scaling]
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> loss_keys() {
  std::vector<RecipeKey> keys =
      KeySection<LossSpec>("loss", [](RunSpec& spec) -> LossSpec& { return spec.loss; })
          .add("label_smoothing", &LossSpec::label_smoothing,
               {.low = 0, .high = 0.999, .help = "share of the target spread over all classes"})
          .take();
  using Scaling = LossScalingSpec;
  for (RecipeKey& key :
       KeySection<Scaling>("loss_scaling", [](RunSpec& spec) -> Scaling& { return spec.loss_scaling; })
           .add("mode", &Scaling::mode,
                {.choices = {"auto", "none", "dynamic", "fixed"},
                .help = "auto (dynamic in f16, else none), none, dynamic or fixed"})
           .add("scale", &Scaling::scale, {.low = kAboveZero, .high = 1e38, .help = "of the loss, at the beginning"})
           .add("growth_factor", &Scaling::growth_factor,
                {.low = 1, .high = 1024, .help = "after growth_interval clean steps"})
           .add("backoff_factor", &Scaling::backoff_factor, {.low = kAboveZero, .high = 1, .help = "after an overflow"})
           .add("growth_interval", &Scaling::growth_interval,
                {.low = 1, .high = 1e12, .unit = "steps", .help = "steps without an overflow, in a row"})
           .add("patience", &Scaling::patience,
                {.low = 1, .high = 1e12, .help = "overflows in a row, then the run ends"})
           .take())
    keys.push_back(std::move(key));
  return keys;
}

}  // namespace weft::spec
