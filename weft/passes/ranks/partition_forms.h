// Which values of a graph are split over ranks, and what is computed in parts: the decision of partition.h.
#pragma once

#include <vector>

#include "weft/passes/ranks/partition.h"

namespace weft::passes {

/// What a rank has of a value.
enum class Form : uint8_t {
  whole,  // all of it
  flat,   // its part of the elements
  sum,    // a term of the sum over the ranks
  all,    // 1 or 0, of which the product over the ranks counts
};

/// What becomes of a node.
enum class Role : uint8_t {
  whole,    // it reads and gives whole tensors
  parts,    // it reads parts, and single numbers
  scatter,  // an all-reduce of which every rank gets its part
  joins,    // it adds terms of sums, or multiplies what is 1 or 0, before these go over the ranks
};

struct Forms {
  std::vector<Form> of_value;
  std::vector<Role> of_node;
};

Forms find_forms(const Graph& graph, const PartitionOptions& options);

}  // namespace weft::passes
