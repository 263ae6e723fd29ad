// Population based training (Jaderberg et al. 2017, "Population based training of neural networks", with truncation
// selection): a number of trials train side by side. After each round the worst give way to copies of the best, weights
// and states of optimisers included, whose values are changed a little. Rounds end for all members together, so that
// the result does not depend on how many train at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/tune/schedulers/scheduler.h"
#include "weft/tune/space/space.h"

namespace weft::tune {

/// One member in so many, but at least one, gives way after each round, to a copy of one of as many best ones.
inline constexpr int64_t kReplacedOfMembers = 4;

/// The next job of SchedulerOptions "population": `trials` members, rounds of `least` epochs. A member's place is
/// TrialProgress::bracket; the newest trial of a place is its member.
Job population_job(const SchedulerOptions& options, const std::vector<TrialProgress>& trials);

/// Values near these, for a copy with this number: each is drawn anew once in four times. If not, a logarithmic range
/// takes a value 1.25 times as large or as small, another range of numbers moves by a tenth of its length, and a choice
/// stays.
Values explored(const Space& space, const Values& values, int64_t seed, int64_t number);

}  // namespace weft::tune
