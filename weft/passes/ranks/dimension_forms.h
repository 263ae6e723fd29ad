// Which values of a graph are split along dimensions, and what each node does with parts: the decision of
// partition_dimensions.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/passes/ranks/partition_dimensions.h"

namespace weft::passes {

/// What a rank has of a value.
struct DimensionForm {
  enum class Kind : uint8_t {
    whole,  // all of it
    split,  // a part along a dimension
    sum,    // a term of the sum over the ranks
    all,    // 1 or 0, of which the product over the ranks counts
  } kind = Kind::whole;
  DimensionSplit split = {};
  // Of `split`: by the rows of a sum that was scattered. No weight is split for its sake, since the next product
  // gathers it, and which rows there are depends on the batch.
  bool is_of_rows = false;
  friend bool operator==(const DimensionForm&, const DimensionForm&) = default;
};

/// What becomes of a node.
struct DimensionRole {
  enum class Kind : uint8_t {
    whole,   // it reads and gives whole tensors
    label,   // it is computed in parts along a label of its rule
    order,   // it only changes the shape of parts
    linear,  // it reads and gives terms of sums
    terms,   // it adds terms, and what is whole as a share of it
    flags,   // it multiplies what is 1 or 0
  } kind = Kind::whole;
  int label = 0;
  int64_t blocks = 1;
  DimensionSplit from = {}, to = {};  // of `order`
};

struct DimensionForms {
  std::vector<DimensionForm> of_value;
  std::vector<DimensionRole> of_node;
  std::vector<std::optional<DimensionSplit>> scattered;  // of sums of which each rank gets its part alone, per value
  std::vector<std::optional<DimensionRule>> rules;       // of the nodes
  std::map<std::string, DimensionSplit> states;
};

DimensionForms find_dimension_forms(const Graph& graph, const DimensionOptions& options);

}  // namespace weft::passes
