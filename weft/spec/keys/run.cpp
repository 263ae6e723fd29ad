// The keys above all tables, and the model's name.
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> run_keys() {
  std::vector<RecipeKey> keys =
      KeySection<ModelSpec>("model", [](RunSpec& spec) -> ModelSpec& { return spec.model; })
          .add("name", &ModelSpec::name, {.help = "`weft models` lists them; other keys of [model] are its options"})
          .take();
  KeySection<RunSpec> run("", [](RunSpec& spec) -> RunSpec& { return spec; });
  run.add("data", &RunSpec::data,
          {.help = "such as fashion-mnist, cifar10:DIR or csv:FILE; `weft data --help` lists all"})
      .add("validation", &RunSpec::validation,
           {.help =
                "share of the training data that decides between checkpoints, such as 0.1, or data of its own; 0: none",
            .takes_number = true})
      .quiet()
      .add("validation_seed", &RunSpec::validation_seed,
           {.low = 0, .high = 9e15, .help = "which samples are set aside for validation"})
      .quiet()
      .add("init", &RunSpec::init,
           {.help = "safetensors file of the weights to start from; empty: the seed draws them"})
      .add("init_head", &RunSpec::init_head,
           {.choices = {"auto", "fresh"},
            .help = "last layer of init: taken where it is for as many classes, or fresh: from the seed"})
      .quiet()
      .add("init_partial", &RunSpec::init_partial,
           {.help = "init may lack tensors of the model, which then start from the seed, and hold others"})
      .quiet()
      .add("epochs", &RunSpec::epochs,
           {.low = kAboveZero,
            .high = 1e6,
            .unit = "epochs",
            .help = "passes over the training data; 9.9: the last one not to its end"})
      .add("max_steps", &RunSpec::max_steps,
           {.low = 0,
            .high = 1e12,
            .unit = "steps",
            .help = "the run ends after so many, before its epochs do; 0: none"})
      .quiet()
      .add("max_time", &RunSpec::max_time,
           {.help = "the run ends after so much time, such as 90m, 2h or 3600 (seconds); empty: none",
            .takes_number = true})
      .quiet()
      .add("batch", &RunSpec::batch,
           {.low = 1, .high = 65536, .unit = "samples", .help = "samples per step", .automatic = RunSpec().batch})
      .measured(&MeasuredKeys::batch)
      .add("accumulate", &RunSpec::accumulate,
           {.low = 1, .high = 65536, .unit = "batches", .help = "batches per update of the weights"})
      .add("virtual_ranks", &RunSpec::virtual_ranks,
           {.low = 0, .high = 65536, .help = "shards of each batch, on any number of ranks; 0: one each"})
      .add("batch_norm", &RunSpec::batch_norm,
           {.choices = {"per_rank", "synchronised"},
            .help = "mean and deviation of a batch: per_rank, or synchronised over all ranks"})
      .add("memory_limit", &RunSpec::memory_limit,
           {.unit = "bytes", .help = "such as 1.5GB: activations are computed twice to keep to it"})
      .add("offload", &RunSpec::offload, {.help = "directory on a disk: there lies what recomputation cannot save"})
      .add("offload_rate", &RunSpec::offload_rate,
           {.unit = "bytes per second", .help = "what that disk reads or writes in a second, for predictions"})
      .add("cluster", &RunSpec::cluster,
           {.help = "what `weft cluster probe` wrote; empty: measured where there are several hosts"})
      .add("cost_profile", &RunSpec::cost_profile,
           {.help = "rates by which plans weigh nodes: default, measured here, or a file of `weft rates`"})
      .add("strategy", &RunSpec::strategy,
           {.choices = {"manual", "auto"},
            .help = "manual: as the keys say; auto: weft chooses mesh, shard.zero, pipeline, batches that are "
                    "accumulated and what is computed twice, for the least time under memory_limit"})
      .quiet()
      .add("late_multiply", &RunSpec::late_multiply,
           {.help = "several ranks gather rows of large layers where reducing their gradients costs more"})
      .add("seed", &RunSpec::seed, {.low = 0, .high = 9e15, .help = "of weights, order and augmentation"})
      .add("threads", &RunSpec::threads,
           {.low = 0, .high = 1024, .help = "0: all cores this process may use", .automatic = int64_t{0}})
      .add("precision", &RunSpec::precision,
           {.choices = {"f32", "bf16", "f16", "auto"},
            .help = "f32, bf16, f16, or auto: of convolutions, matrix products and what follows them"})
      .add("precision_of", &RunSpec::precision_of, {.help = "exceptions by node or op: 'softmax=f32, head*=f32'"});
  for (RecipeKey& key : run.take()) keys.push_back(std::move(key));
  return keys;
}

}  // namespace weft::spec
