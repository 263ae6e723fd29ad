// What the dimensions of an op's operands and results have to do with each other, so that it can be computed in parts
// on several ranks. Each dimension has a label, as the letters of an einsum. Along a label, operands and results that
// have it are split together; a result that lacks it is put together from what each rank gives, a sum in most cases
// (GSPMD: Xu et al. 2021, "GSPMD: General and scalable parallelization for ML computation graphs", section 4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/graph/attributes.h"
#include "weft/graph/ids.h"
#include "weft/tensor/tensor.h"

namespace weft {

class Graph;

/// A node, as the rule of its op sees it. Layouts are ignored.
struct DimensionContext {
  const std::vector<TensorType>&inputs, &outputs;
  const Attributes& attributes;
};

/// How a result without the label is put together from those of the ranks.
enum class Joined {
  sum,
  mean,
  all,  // 1 where it is 1 on all ranks, else 0
};

struct DimensionRule {
  static constexpr int kWhole = -1;  // the label of a dimension that cannot be split

  std::vector<std::vector<int>> inputs = {}, outputs = {};  // per tensor a label for each dimension
  std::vector<Joined> joined = {};                          // per result; missing ones: sum
  /// What it makes of sums over the ranks is the sum of what it makes of their terms, all floating operands alike.
  bool is_linear = false;
  /// The result has the operand's elements in their order, under another shape: it has no labels.
  bool keeps_order = false;
  /// Labels along which a part has to know where it stands: it has the operand `place` more, i64[], the rank's.
  std::vector<int> placed = {};
  /// Labels along which it is several nodes that exchange something: OpDef::in_parts adds them.
  std::vector<int> composed = {};
};

/// A node that becomes that of a part along a label.
struct PartContext {
  const DimensionContext& whole;
  const std::vector<Shape>&inputs, &outputs;  // of the part
  int64_t ranks = 2, blocks = 1;              // see Sharding::blocks
};

/// The same where it becomes several nodes: they are added to the graph.
struct ComposedContext {
  Graph& graph;
  const DimensionContext& whole;
  const std::vector<ValueId>& inputs;  // operands of the part
  ValueId place;                       // i64[]
  std::string axis;
  int64_t ranks = 2;
  std::string name;  // of the node
};

}  // namespace weft
