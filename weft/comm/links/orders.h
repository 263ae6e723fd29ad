// In which order hosts may take the places of a schedule. Schedules know places only; which host takes which decides
// over which links the messages go.
#pragma once

#include <vector>

#include "weft/comm/links/links.h"

namespace weft::comm {

/// Host by place; an empty one is the order of the hosts' numbers, which is the first of the result and, where links
/// are equal, the only one. Of the others, each once: hosts of a group together, for rings and where neighbours
/// exchange the most; each followed by the nearest that is left; and groups in turn, for exchanges that grow with
/// distance. `first`: the host that what is sent around begins or ends with, which then begins its group; -1: none.
std::vector<std::vector<int>> orders_of(const Links& links, int hosts, int first = -1);

/// Whether the members of an order are groups of the same size, two or more, one behind the other.
bool has_groups_in_turn(const Links& links, int hosts);

/// Where the host stands in the order.
int place_of(const std::vector<int>& order, int host);

}  // namespace weft::comm
