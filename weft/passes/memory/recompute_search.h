// Chooses which buffers are dropped and made again, or lie in a file, so that the step fits a limit at the least extra
// time: greedily by bytes above the limit saved per second, from all ends (nothing dropped, everything dropped,
// everything in the file), one buffer at a time and all results of a step at once, then by taking back whatever turned
// out superfluous, then by choosing parts of the order anew (large neighbourhood search).
#pragma once

#include "weft/passes/memory/recompute_problem.h"

namespace weft::passes {

struct RecomputeChoice {
  std::vector<Fate> fates;
  std::vector<RecomputeEvent> events;
  RecomputeOutcome outcome;
  bool fits() const { return outcome.excess == 0; }
};

/// The cheapest choice found that fits, or else the one with the lowest peak. The same for the same problem.
RecomputeChoice choose_recompute(const RecomputeProblem& problem, int64_t limit_bytes);

/// The same in a tenth of the time, from fates that were chosen for nearly this limit.
RecomputeChoice mend_recompute(const RecomputeProblem& problem, int64_t limit_bytes, const std::vector<Fate>& near);

}  // namespace weft::passes
