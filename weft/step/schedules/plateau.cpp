// Lower where a measure no longer improves. What comes of the measure (weft/step/plateau.h) is a factor of this rate.
#include "weft/step/schedules/entries.h"
#include "weft/step/schedules/keys.h"
#include "weft/step/schedules/schedule.h"

namespace weft::step {

ScheduleEntry plateau_entry() {
  return {.name = "plateau",
          .summary = "lower where a measure no longer improves, as ReduceLROnPlateau",
          .keys = {factor_key(),
                   end_factor_key(),
                   {.name = "monitor",
                    .value = "auto",
                    .help = "plateau: a metric, such as validation_accuracy; auto: validation_loss, or train_loss"},
                   {.name = "patience",
                    .value = int64_t{10},
                    .low = 0,
                    .high = 1e6,
                    .unit = "epochs",
                    .help = "plateau: epochs without improvement before a reduction"},
                   {.name = "threshold",
                    .value = 1e-4,
                    .low = 0,
                    .high = 1,
                    .help = "plateau: relative improvement that counts"},
                   {.name = "cooldown",
                    .value = int64_t{0},
                    .low = 0,
                    .high = 1e6,
                    .unit = "epochs",
                    .help = "plateau: epochs after a reduction that do not count"}},
          .for_groups = false,
          .make = [](const spec::ScheduleSpec& schedule, double rate, const spec::Course& course) {
            return with_rise(schedule, course, [rate](int64_t) { return rate; });
          }};
}

}  // namespace weft::step
