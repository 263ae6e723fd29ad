// A linear rise of the rate over the first steps.
#include <algorithm>

#include "weft/step/schedules/schedule.h"

namespace weft::step {

double warm_up(int64_t step, int64_t warmup_steps) {
  if (step + 1 >= warmup_steps) return 1;
  return static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
}

}  // namespace weft::step
