// Schedules run backwards. What gives all members the pieces of each, taken from its end to its beginning with
// additions in place of copies, sums up each piece where it began (Chan, Heimlich, Purkayastha, van de Geijn 2007,
// "Collective communication: theory, practice, and experience"): an all-gather becomes a reduce-scatter of the same
// latency and traffic, a broadcast a sum at its root.
#pragma once

#include "weft/comm/schedules/schedule.h"

namespace weft::comm {

/// Of a schedule that only sends and copies, in which a member receives an element at most once. Sums of an element are
/// made in the order of the schedule, whatever the order in which messages come. What a member does not keep holds
/// partial sums in the end.
Schedule reversed(const Schedule& schedule);

}  // namespace weft::comm
