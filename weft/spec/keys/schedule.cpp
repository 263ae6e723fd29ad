// [schedule]: of the learning rate.
#include <fmt/ranges.h>

#include "weft/spec/recipe_keys.h"

namespace weft::spec {

std::vector<RecipeKey> schedule_keys(const Entries& entries) {
  using Part = ScheduleSpec;
  const std::vector<std::string> names = names_of(entries.schedules);
  return KeySection<Part>("schedule", [](RunSpec& spec) -> Part& { return spec.schedule; })
      .add("name", &Part::name, {.choices = names, .help = fmt::format("{}", fmt::join(names, ", "))})
      .add("warmup_epochs", &Part::warmup_epochs,
           {.low = 0, .high = 1e6, .unit = "epochs", .help = "linear rise first; not with one_cycle"})
      .add("warmup_steps", &Part::warmup_steps,
           {.low = 0,
            .high = 1e12,
            .unit = "steps",
            .help = "the same, counted in steps; one of the two",
            .automatic = int64_t{0}})
      .measured(&MeasuredKeys::warmup_steps)
      .quiet()
      .add_declared(declared_keys(entries.schedules), {{"rise", &Part::rise},
                                                       {"annealing", &Part::annealing},
                                                       {"start_divisor", &Part::start_divisor},
                                                       {"end_divisor", &Part::end_divisor},
                                                       {"every_epochs", &Part::every_epochs},
                                                       {"factor", &Part::factor},
                                                       {"boundaries", &Part::boundaries},
                                                       {"factors", &Part::factors},
                                                       {"lines", &Part::lines},
                                                       {"power", &Part::power},
                                                       {"end_factor", &Part::end_factor},
                                                       {"periods", &Part::periods},
                                                       {"alpha", &Part::alpha},
                                                       {"beta", &Part::beta},
                                                       {"monitor", &Part::monitor},
                                                       {"patience", &Part::patience},
                                                       {"threshold", &Part::threshold},
                                                       {"cooldown", &Part::cooldown}})
      .take();
}

}  // namespace weft::spec
