// The same rate throughout, after the warm-up.
#include "weft/step/schedules/entries.h"
#include "weft/step/schedules/schedule.h"

namespace weft::step {

ScheduleEntry constant_entry() {
  return {.name = "constant",
          .summary = "the peak throughout",
          .make = [](const spec::ScheduleSpec& schedule, double rate, const spec::Course& course) {
            return with_rise(schedule, course, [rate](int64_t) { return rate; });
          }};
}

}  // namespace weft::step
