// [schedule]: of the learning rate.
#include <fmt/ranges.h>

#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<std::string> schedule_names() {
  return {"constant",  "cosine",  "exponential", "linear_cosine", "one_cycle",
          "piecewise", "plateau", "polynomial",  "step"};
}

std::vector<RecipeKey> schedule_keys() {
  return KeySection<ScheduleSpec>("schedule", [](RunSpec& spec) -> ScheduleSpec& { return spec.schedule; })
      .add("name", &ScheduleSpec::name,
           {.choices = schedule_names(), .help = fmt::format("{}", fmt::join(schedule_names(), ", "))})
      .add("warmup_epochs", &ScheduleSpec::warmup_epochs,
           {.low = 0, .high = 1e6, .unit = "epochs", .help = "linear rise first; not with one_cycle"})
      .add("rise", &ScheduleSpec::rise,
           {.low = 0.001, .high = 0.999, .help = "one_cycle: fraction of the steps before the peak"})
      .add("annealing", &ScheduleSpec::annealing,
           {.choices = {"cosine", "linear"}, .help = "one_cycle: cosine or linear"})
      .add("start_divisor", &ScheduleSpec::start_divisor,
           {.low = 1, .high = 1e9, .help = "one_cycle: first rate = peak / this"})
      .add("end_divisor", &ScheduleSpec::end_divisor,
           {.low = 1, .high = 1e12, .help = "one_cycle: last rate = first rate / this"})
      .add("every_epochs", &ScheduleSpec::every_epochs,
           {.low = 0,
            .high = 1e6,
            .unit = "epochs",
            .help = "step, exponential; 0: a third of the run",
            .automatic = 0.0})
      .add("factor", &ScheduleSpec::factor,
           {.low = kAboveZero, .high = 1, .help = "step, exponential, plateau, piecewise without factors"})
      .add("boundaries", &ScheduleSpec::boundaries,
           {.low = 0, .high = 1e6, .unit = "epochs", .help = "piecewise: epochs"})
      .add("factors", &ScheduleSpec::factors,
           {.low = 0, .high = 1e6, .help = "piecewise: of the rate, before and after each boundary"})
      .add("lines", &ScheduleSpec::lines, {.help = "piecewise: lines between the factors at the boundaries"})
      .add("power", &ScheduleSpec::power, {.low = kAboveZero, .high = 100, .help = "polynomial"})
      .add("end_factor", &ScheduleSpec::end_factor,
           {.low = 0, .high = 1, .help = "polynomial, plateau: lowest rate, over the peak"})
      .add("periods", &ScheduleSpec::periods,
           {.low = 0, .high = 1e6, .help = "linear_cosine: cosine waves over the run"})
      .add("alpha", &ScheduleSpec::alpha, {.low = 0, .high = 1, .help = "linear_cosine: added to the line"})
      .add("beta", &ScheduleSpec::beta, {.low = 0, .high = 1, .help = "linear_cosine: added to the product"})
      .add("monitor", &ScheduleSpec::monitor,
           {.choices = {"test_loss", "test_accuracy", "train_loss", "train_accuracy"},
            .help = "plateau: test_loss, test_accuracy, train_loss or train_accuracy"})
      .add("patience", &ScheduleSpec::patience,
           {.low = 0, .high = 1e6, .unit = "epochs", .help = "plateau: epochs without improvement before a reduction"})
      .add("threshold", &ScheduleSpec::threshold,
           {.low = 0, .high = 1, .help = "plateau: relative improvement that counts"})
      .add("cooldown", &ScheduleSpec::cooldown,
           {.low = 0, .high = 1e6, .unit = "epochs", .help = "plateau: epochs after a reduction that do not count"})
      .take();
}

}  // namespace weft::spec
