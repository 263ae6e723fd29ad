// Where the nodes come from that differentiation has added to a graph (autodiff/autodiff.h).
#pragma once

#include <cstddef>
#include <vector>

#include "weft/graph/ids.h"

namespace weft {

struct GradientOrigins {
  size_t forward_nodes = 0;      // that were there before
  std::vector<NodeId> made_for;  // per node behind those: of which one's rule it is; of a sum of gradients the node
                                 // that gives the value, or, of an input's, the one whose rule gave the last term.
                                 // Invalid where it is of none
  std::vector<bool> is_sum;      // per node behind those: a sum of gradients of a value that is read several times
};

}  // namespace weft
