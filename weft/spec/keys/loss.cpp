// [loss], [loss_scaling]
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> loss_keys(const Entries& entries) {
  using Part = LossSpec;
  std::vector<std::string> names = names_of(entries.losses);
  names.insert(names.begin(), "auto");
  std::vector<RecipeKey> keys =
      KeySection<Part>("loss", [](RunSpec& spec) -> Part& { return spec.loss; })
          .add("name", &Part::name, {.choices = names, .help = "auto: as the model and the labels have it"})
          .quiet()
          .add_declared(declared_keys(entries.losses), {{"label_smoothing", &Part::label_smoothing}})
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
