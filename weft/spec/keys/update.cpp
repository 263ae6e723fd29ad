// [clip], [metrics], [ema], [lookahead]: what goes around the optimiser.
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> update_keys(const Entries& entries) {
  std::vector<RecipeKey> keys;
  const auto add = [&](std::vector<RecipeKey> more) {
    for (RecipeKey& key : more) keys.push_back(std::move(key));
  };
  add(KeySection<ClipSpec>("clip", [](RunSpec& spec) -> ClipSpec& { return spec.clip; })
          .add("norm", &ClipSpec::norm,
               {.low = 0, .high = 1e30, .help = "bound of the norm of all gradients together; 0: none"})
          .add("value", &ClipSpec::value,
               {.low = 0, .high = 1e30, .help = "bound of each element of the gradients; 0: none"})
          .take());
  add(KeySection<MetricsSpec>("metrics", [](RunSpec& spec) -> MetricsSpec& { return spec.metrics; })
          .add("gradient_norm", &MetricsSpec::gradient_norm, {.help = "recorded even where clip.norm = 0"})
          .add("noise_every", &MetricsSpec::noise_every,
               {.low = 0,
                .high = 1e9,
                .unit = "steps",
                .help = "between two measurements of the gradient noise, each of which takes up to a forward and a "
                        "backward part; 0: none"})
          .quiet()
          .add("names", &MetricsSpec::names, {.help = "of evaluations, with commas between; auto: those of the task"})
          .quiet()
          .add_declared(declared_keys(entries.metrics, /*with_readers=*/false), {})
          .take());
  add(KeySection<EmaSpec>("ema", [](RunSpec& spec) -> EmaSpec& { return spec.ema; })
          .add("decay", &EmaSpec::decay,
               {.low = 0, .high = 0.9999999, .help = "average of the weights, used and saved in their place; 0: none"})
          .add("warmup", &EmaSpec::warmup, {.help = "the decay begins at 0.1 and rises"})
          .take());
  add(KeySection<LookaheadSpec>("lookahead", [](RunSpec& spec) -> LookaheadSpec& { return spec.lookahead; })
          .add("steps", &LookaheadSpec::steps,
               {.low = 0, .high = 1e9, .unit = "updates", .help = "updates between synchronisations; 0: no look-ahead"})
          .add("alpha", &LookaheadSpec::alpha,
               {.low = kAboveZero, .high = 1, .help = "share of the way that the slow weights go"})
          .add("end_alpha", &LookaheadSpec::end_alpha,
               {.low = -1, .high = 1, .help = "the same at the end of the run; negative: alpha"})
          .add("power", &LookaheadSpec::power,
               {.low = kAboveZero, .high = 100, .help = "between them, of the part of the run that is done"})
          .take());
  return keys;
}

}  // namespace weft::spec
