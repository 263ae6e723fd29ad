// The table of the schedules: a line each.
#include "weft/step/schedules/entries.h"

namespace weft::step {

std::vector<ScheduleEntry> all_schedules() {
  return {constant_entry(),  cosine_entry(),  exponential_entry(), linear_cosine_entry(), one_cycle_entry(),
          piecewise_entry(), plateau_entry(), polynomial_entry(),  step_entry()};
}

}  // namespace weft::step
