// The rules by which ops are split along dimensions (graph/dimension_rule.h), as far as several ops share them.
#pragma once

#include <functional>
#include <vector>

#include "weft/graph/op_def.h"

namespace weft::ops {

using DimensionFunction = std::function<DimensionRule(const DimensionContext&)>;

/// Results of one shape, to which the operands broadcast. A label for each dimension.
DimensionRule elementwise_dimensions(const DimensionContext& context);
/// The same of an op that is linear in all its operands together.
DimensionRule linear_dimensions(const DimensionContext& context);

/// Images [N,C,..] or rows [N,C], and numbers per channel [C]: along the channels.
DimensionRule channel_dimensions(const DimensionContext& context);

/// Every dimension of the operands and results has its own label, but for these axes of all of them: all are of one
/// shape.
DimensionRule same_but(const DimensionContext& context, const std::vector<int>& axes);

/// Labels 0, 1, ... for the dimensions from `begin` up to `end`, which has `offset` as its label of the first.
std::vector<int> count_up(int count, int first = 0);

/// For `of_part`: the attribute is the shape of the result.
void take_result_shape(Attributes& attributes, const PartContext& context);

/// The op with the rule.
inline OpDef along(OpDef op, DimensionFunction rule) {
  op.dimensions = std::move(rule);
  return op;
}

}  // namespace weft::ops
