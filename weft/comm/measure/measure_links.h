// Measures links between hosts: of each pair, and what groups of hosts can send to each other together.
#pragma once

#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/links/cost.h"

namespace weft::comm {

/// Between two ranks of the same host, of which `first` measures. The other one's result is 0.
LinkCosts measure_link(Communicator& communicator, int first, int second);

/// Sets costs.between_hosts and costs.topology. All ranks call it; all get the same. `ranks`: one of each host, two or
/// more. Each pair of hosts is measured, the pairs of a round at once, all in about three seconds: the more hosts, the
/// shorter the messages. Where the links fall into groups, which equal ones do not, whatever disturbs them
/// (grouping.h), those between groups are measured again alone, and what leaves a group when all of its hosts send;
/// where it was noise, there are no groups after all.
void measure_links(Communicator& communicator, const std::vector<int>& ranks, ClusterCosts& costs);

}  // namespace weft::comm
