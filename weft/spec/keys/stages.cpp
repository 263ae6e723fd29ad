// [momentum_schedule], [batch_schedule], [image_schedule]: what else may change during a run.
#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> momentum_schedule_keys() {
  using Part = MomentumScheduleSpec;
  return KeySection<Part>("momentum_schedule", [](RunSpec& spec) -> Part& { return spec.optimizer.momentum_schedule; })
      .add("name", &Part::name,
           {.choices = {"constant", "one_cycle", "piecewise"},
            .help = "constant (optimizer.momentum), one_cycle or piecewise"})
      .add("low", &Part::low,
           {.low = 0, .high = 0.9999999, .help = "one_cycle: where the rate peaks", .read_by = {"one_cycle"}})
      .add("high", &Part::high,
           {.low = 0, .high = 0.9999999, .help = "one_cycle: at both ends", .read_by = {"one_cycle"}})
      .add("boundaries", &Part::boundaries,
           {.low = 0, .high = 1e6, .unit = "epochs", .help = "piecewise: epochs", .read_by = {"piecewise"}})
      .add("momenta", &Part::momenta,
           {.low = 0, .high = 0.9999999, .help = "piecewise: before and after each boundary", .read_by = {"piecewise"}})
      .add("lines", &Part::lines, {.help = "piecewise: lines between the points", .read_by = {"piecewise"}})
      .take();
}

std::vector<RecipeKey> stage_keys() {
  using Batches = BatchScheduleSpec;
  std::vector<RecipeKey> keys =
      KeySection<Batches>("batch_schedule", [](RunSpec& spec) -> Batches& { return spec.batch_schedule; })
          .add("boundaries", &Batches::boundaries,
               {.low = -1e6,
                .high = 1e6,
                .unit = "epochs",
                .help = "epochs after which the batch changes, such as 2 or 2.5; -1: before the last"})
          .add("batches", &Batches::batches,
               {.low = 1, .high = 65536, .unit = "samples", .help = "before and after each boundary; none: batch"})
          .add("accumulate", &Batches::accumulate,
               {.low = 1, .high = 65536, .unit = "batches", .help = "likewise; none: accumulate"})
          .add("rate_scaling", &Batches::rate_scaling,
               {.choices = {"none", "linear", "square_root"},
                .help = "of the rate with samples per step over batch * accumulate: none, linear or square_root"})
          .take();
  using Images = ImageScheduleSpec;
  for (RecipeKey& key :
       KeySection<Images>("image_schedule", [](RunSpec& spec) -> Images& { return spec.image_schedule; })
           .add("boundaries", &Images::boundaries,
                {.low = -1e6, .high = 1e6, .unit = "epochs", .help = "as batch_schedule.boundaries"})
           .add("sizes", &Images::sizes,
                {.low = 1,
                .high = 4096,
                .unit = "pixels",
                .help = "heights of training images, before and after each; none: the data's"})
           .take())
    keys.push_back(std::move(key));
  return keys;
}

}  // namespace weft::spec
