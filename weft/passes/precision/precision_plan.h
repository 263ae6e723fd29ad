// Which nodes of a graph in f32 compute in a narrower type: what lower_precision decides before it rewrites.
#pragma once

#include <vector>

#include "weft/passes/precision/lower_precision.h"

namespace weft::passes {

struct PrecisionPlan {
  std::vector<bool> is_narrow;        // per node: its operands are T, but for those that the op keeps in f32
  std::vector<bool> has_wide_result;  // per narrow node: `result_dtype` is to be f32
};

PrecisionPlan plan_precision(const Graph& graph, const PrecisionPolicy& policy);

/// Whether a narrow node takes this operand in T.
bool takes_narrow(const OpDef& op, size_t operand, const TensorType& type);

}  // namespace weft::passes
