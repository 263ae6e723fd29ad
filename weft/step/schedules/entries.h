// One function per schedule, each in the file of its name (step's in that of exponential); all_schedules.cpp lists
// them.
#pragma once

#include "weft/library/entries.h"

namespace weft::step {

ScheduleEntry constant_entry();
ScheduleEntry cosine_entry();
ScheduleEntry exponential_entry();
ScheduleEntry linear_cosine_entry();
ScheduleEntry one_cycle_entry();
ScheduleEntry piecewise_entry();
ScheduleEntry plateau_entry();
ScheduleEntry polynomial_entry();
ScheduleEntry step_entry();

/// In the order in which messages and `weft keys` name them.
std::vector<ScheduleEntry> all_schedules();

}  // namespace weft::step
