// [compression], [averaging], [mesh], [shard], [pipeline], [balance]: what several ranks exchange, what each of them
// keeps, and how much each of them computes.
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> rank_keys() {
  using Compression = CompressionSpec;
  std::vector<RecipeKey> keys =
      KeySection<Compression>("compression", [](RunSpec& spec) -> Compression& { return spec.compression; })
          .add("method", &Compression::method,
               {.choices = {"none", "auto", "bf16", "f16", "powersgd", "top_k", "one_bit"},
                .help = "of the gradients that ranks exchange"})
          .add("tensors", &Compression::tensors,
               {.choices = {"paid", "all"},
                .help = "paid: those where it is predicted to pay; all: wherever it can be done"})
          .add("rank", &Compression::rank,
               {.low = 1, .high = 1024, .help = "powersgd: columns of the products", .read_by = {"auto", "powersgd"}})
          .add("share", &Compression::share,
               {.low = 1e-6, .high = 0.5, .help = "top_k: of the elements", .read_by = {"auto", "top_k"}})
          .take();
  using Averaging = AveragingSpec;
  for (RecipeKey& key :
       KeySection<Averaging>("averaging", [](RunSpec& spec) -> Averaging& { return spec.averaging; })
           .add("period", &Averaging::period,
                {.low = 0, .high = 1e9, .unit = "steps", .help = "steps that each rank trains on its own; 0: none"})
           .add("adaptive", &Averaging::adaptive, {.help = "the period shrinks as the loss does"})
           .add("slow_momentum", &Averaging::slow_momentum,
                {.low = 0, .high = 0.9999999, .help = "of the means of the weights"})
           .add("slow_learning_rate", &Averaging::slow_learning_rate,
                {.low = kAboveZero, .high = 100, .help = "of their way"})
           .add("states_every", &Averaging::states_every,
                {.low = 1,
                .high = 1e6,
                .unit = "means",
                .help = "from one of momenta and all other states to the next; the others are of the weights alone"})
           .take())
    keys.push_back(std::move(key));
  for (RecipeKey& key :
       KeySection<MeshSpec>("mesh", [](RunSpec& spec) -> MeshSpec& { return spec.mesh; })
           .add("data", &MeshSpec::data,
                {.low = 0, .high = 65536, .unit = "ranks", .help = "that divide each batch; 0: all that are left"})
           .quiet()
           .add("tensor", &MeshSpec::tensor, {.low = 1, .high = 1024, .unit = "ranks", .help = "that share the layers"})
           .quiet()
           .add("pipeline", &MeshSpec::pipeline,
                {.low = 1, .high = 4096, .unit = "ranks", .help = "each of which has some layers"})
           .quiet()
           .take())
    keys.push_back(std::move(key));
  for (RecipeKey& key : KeySection<ShardSpec>("shard", [](RunSpec& spec) -> ShardSpec& { return spec.shard; })
                            .add("zero", &ShardSpec::zero,
                                 {.low = 0,
                                 .high = 3,
                                 .help = "what ranks share instead of each keeping it: 0 nothing, 1 the optimiser's "
                                         "states, 2 also sums of gradients, 3 also weights"})
                            .quiet()
                            .add("tensor", &ShardSpec::tensor,
                                 {.help = "how ranks that share the layers split weights: auto, or PATTERN=outputs, "
                                          "inputs, rows, columns, whole or auto, with commas between"})
                            .quiet()
                            .add("sequence", &ShardSpec::sequence,
                                 {.help = "ranks that share the layers also divide norms, dropout and sums between "
                                          "them, each for a part of the tokens"})
                            .quiet()
                            .add("experts", &ShardSpec::experts,
                                 {.choices = {"whole", "data"},
                                 .help = "data: ranks that divide each batch also divide the experts of a layer, and "
                                         "send each other tokens"})
                            .quiet()
                            .take())
    keys.push_back(std::move(key));
  using Pipeline = PipelineSpec;
  for (RecipeKey& key :
       KeySection<Pipeline>("pipeline", [](RunSpec& spec) -> Pipeline& { return spec.pipeline; })
           .add("schedule", &Pipeline::schedule,
                {.choices = {"gpipe", "1f1b", "interleaved", "zero_bubble", "zero_bubble_v"},
                .help = "in which ranks take turns"})
           .quiet()
           .add("micro_batches", &Pipeline::micro_batches,
                {.low = 1, .high = 4096, .help = "into which each rank's part of a batch is divided"})
           .quiet()
           .add("chunks", &Pipeline::chunks,
                {.low = 1, .high = 64, .help = "of layers, which each rank has", .read_by = {"interleaved"}})
           .quiet()
           .take())
    keys.push_back(std::move(key));
  for (RecipeKey& key :
       KeySection<BalanceSpec>("balance", [](RunSpec& spec) -> BalanceSpec& { return spec.balance; })
           .add("grains", &BalanceSpec::grains,
                {.low = 0, .high = 65536, .help = "equal pieces of each batch that ranks take by their shares; 0: off"})
           .quiet()
           .add("by_speed", &BalanceSpec::by_speed,
                {.help = "ranks that stay slow take fewer grains; false: all take as many"})
           .quiet()
           .take())
    keys.push_back(std::move(key));
  return keys;
}

}  // namespace weft::spec
