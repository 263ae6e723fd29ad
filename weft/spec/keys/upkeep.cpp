// [loader], [checkpoint], [evaluation], [stop]: what goes on beside the steps.
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
          .add("every_steps", &EvaluationSpec::every_steps,
               {.low = 0,
                .high = 1e12,
                .unit = "steps",
                .help = "of the validation part, within epochs too; 0: not by steps"})
          .quiet()
          .add("test_data", &EvaluationSpec::test_data,
               {.choices = {"auto", "at_end", "each_time"},
                .help = "at_end or each_time; auto: at_end where there is a validation part"})
          .quiet()
          .add("batch", &EvaluationSpec::batch,
               {.low = 0, .high = 65536, .unit = "samples", .help = "0: as in training", .automatic = int64_t{0}})
          .add("tta", &EvaluationSpec::tta,
               {.choices = data::tta_names(), .help = "views of a picture: none, flip or multicrop"})
          .add("weights", &EvaluationSpec::weights,
               {.choices = {"auto", "once", "by_layer"},
                .help =
                    "that ranks keep in parts: put together once, or where a layer reads them; auto: by_layer with a "
                    "memory_limit, with shard.zero = 3 alone, or where they take over a quarter of the memory"})
          .quiet()
          .take());
  add(KeySection<StopSpec>("stop", [](RunSpec& spec) -> StopSpec& { return spec.stop; })
          .add("monitor", &StopSpec::monitor,
               {.help = "what patience and target watch, such as validation_accuracy; auto: validation_loss"})
          .quiet()
          .add("patience", &StopSpec::patience,
               {.low = 0,
                .high = 1e6,
                .unit = "evaluations",
                .help = "the run ends after so many without improvement; 0: it does not"})
          .quiet()
          .add("least_change", &StopSpec::least_change,
               {.low = 0, .high = 1e30, .help = "of the metric, that counts as an improvement"})
          .quiet()
          .add("target", &StopSpec::target,
               {.help = "the run ends where the metric reaches it, such as 0.95; empty: none", .takes_number = true})
          .quiet()
          .take());
  return keys;
}

}  // namespace weft::spec
