// [loader], [checkpoint], [evaluation]: what goes on beside the steps.
#include "weft/data/augment/views.h"
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> upkeep_keys() {
  std::vector<RecipeKey> keys;
  const auto add = [&](std::vector<RecipeKey> more) {
    for (RecipeKey& key : more) keys.push_back(std::move(key));
  };
  add(KeySection<LoaderSpec>("loader", [](RunSpec& spec) -> LoaderSpec& { return spec.loader; })
          .add("workers", &LoaderSpec::workers,
               {.low = 0, .high = 1024, .help = "threads that make batches; 0: automatic", .automatic = int64_t{0}})
          .add("prefetch", &LoaderSpec::prefetch,
               {.low = 0,
                .high = 1024,
                .unit = "batches",
                .help = "batches made ahead; 0: automatic",
                .automatic = int64_t{0}})
          .take());
  add(KeySection<CheckpointSpec>("checkpoint", [](RunSpec& spec) -> CheckpointSpec& { return spec.checkpoint; })
          .add("every_epochs", &CheckpointSpec::every_epochs,
               {.low = 0, .high = 1e6, .unit = "epochs", .help = "0: not by epochs"})
          .add("every_steps", &CheckpointSpec::every_steps,
               {.low = 0, .high = 1e12, .unit = "steps", .help = "0: not by steps"})
          .add("every_seconds", &CheckpointSpec::every_seconds,
               {.low = 0, .high = 1e9, .unit = "seconds", .help = "0: not by time"})
          .add("keep", &CheckpointSpec::keep,
               {.low = 1, .high = 1e6, .help = "newest ones; the best is kept beside them"})
          .take());
  add(KeySection<EvaluationSpec>("evaluation", [](RunSpec& spec) -> EvaluationSpec& { return spec.evaluation; })
          .add("every_epochs", &EvaluationSpec::every_epochs,
               {.low = 0, .high = 1e6, .unit = "epochs", .help = "0: after the last epoch only"})
          .add("batch", &EvaluationSpec::batch,
               {.low = 0, .high = 65536, .unit = "samples", .help = "0: as in training", .automatic = int64_t{0}})
          .add("tta", &EvaluationSpec::tta,
               {.choices = data::tta_names(), .help = "views of a picture: none, flip or multicrop"})
          .take());
  return keys;
}

}  // namespace weft::spec
